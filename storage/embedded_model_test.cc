// Whatever is appended, in whatever groups and over whatever restarts and torn tails, the log is the vector
// that a reader expects.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>

#include "storage/embedded_log.h"
#include "storage/log_contract.h"
#include "storage/segment.h"
#include "storage/temporary_directory.h"

namespace muster::storage {
namespace {

std::unique_ptr<Log> open(const std::string& path) {
  std::string notice;
  absl::StatusOr<std::unique_ptr<Log>> log = open_embedded_log(path, LogMode::kWrite, &notice);
  RC_ASSERT(log.ok());
  return std::move(*log);
}

std::vector<LogEntry> any_group() {
  std::vector<LogEntry> group;
  for (const std::string& value :
       *rc::gen::container<std::vector<std::string>>(rc::gen::arbitrary<std::string>())) {
    group.push_back({*rc::gen::arbitrary<std::string>(), "Type", *rc::gen::arbitrary<uint32_t>(), value});
  }
  return group;
}

void check(Log& log, const std::vector<LogEntry>& model) {
  const auto end = static_cast<int64_t>(model.size());
  RC_ASSERT(*log.end() == end);
  const int64_t from = *rc::gen::inRange<int64_t>(0, end + 1);
  auto reader = log.open_reader(from);
  RC_ASSERT(reader.ok());
  for (int64_t next = from; next < end;) {
    auto records = (*reader)->read(*rc::gen::inRange<size_t>(1, 20), 0);
    RC_ASSERT(records.ok());
    RC_ASSERT(!records->empty());
    for (const LogRecord& record : *records) {
      const LogEntry& expected = model[static_cast<size_t>(next)];
      RC_ASSERT(record.position == next++);
      RC_ASSERT(record.key == expected.key);
      RC_ASSERT(record.value == expected.value);
    }
  }
}

RC_GTEST_PROP(EmbeddedModel, IsAVectorOverRestartsAndTornTails, ()) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/log";
  std::vector<LogEntry> model;
  std::unique_ptr<Log> log = open(path);
  const int steps = *rc::gen::inRange(1, 12);
  for (int step = 0; step < steps; ++step) {
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        log.reset();
        log = open(path);
        break;
      case 1:
        check(*log, model);
        break;
      case 2: {  // a crash in the middle of writing one more group
        if (model.empty()) break;
        const std::string file = segment_path(path, 0);
        const auto good = std::filesystem::file_size(file);
        RC_ASSERT(append_and_wait(*log, {{"k", "Type", 1, "lost"}}).ok());
        log.reset();
        std::filesystem::resize_file(file, *rc::gen::inRange(good, std::filesystem::file_size(file)));
        log = open(path);
        break;
      }
      default: {
        const std::vector<LogEntry> group = any_group();
        RC_ASSERT(append_and_wait(*log, group).ok());
        model.insert(model.end(), group.begin(), group.end());
      }
    }
  }
  check(*log, model);
}

}  // namespace
}  // namespace muster::storage
