#include "tools/bench/raw_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "storage/open_log.h"
#include "tools/bench/measure.h"
#include "tools/bench/raw_kafka.h"

namespace muster::bench {
namespace {

using storage::LogAddress;
using storage::LogEntry;

// A file that is appended to and synced.
class RawFile {
 public:
  explicit RawFile(std::string path)
      : path_(std::move(path)),
        fd_(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644)) {}
  ~RawFile() {
    if (fd_ < 0) return;
    close(fd_);
    unlink(path_.c_str());
  }

  absl::Status append(const std::string& bytes) {
    if (fd_ < 0 || write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
        fdatasync(fd_) != 0)
      return absl::UnavailableError(absl::StrCat("raw file ", path_, ": ", strerror(errno)));
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const int fd_;
};

// What each append() writes.
std::vector<std::string> groups_of(const std::vector<LogEntry>& records, uint64_t batch) {
  std::vector<std::string> out;
  for (size_t i = 0; i < records.size(); ++i) {
    if (i % batch == 0) out.emplace_back();
    absl::StrAppend(&out.back(), records[i].key, records[i].value);
  }
  return out;
}

}  // namespace

absl::Status check_has_raw(const Place& place) {
  if (place.log().kind != LogAddress::Kind::kMemory) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--log memory: there is no log below it to compare with; name embedded: or kafka:BROKERS/PREFIX");
}

absl::StatusOr<std::vector<LogEntry>> submitted_records(const Place& place) {
  auto log = storage::open_log(place.log(), storage::LogMode::kReadOnly);
  if (!log.ok()) return log.status();
  auto first = (*log)->first();
  auto end = (*log)->end();
  if (!first.ok() || !end.ok()) return first.ok() ? end.status() : first.status();
  auto reader = (*log)->open_reader(*first);
  if (!reader.ok()) return reader.status();
  std::vector<LogEntry> out;
  for (int64_t next = *first; next < *end;) {
    auto read = (*reader)->read(10'000, 5'000);
    if (!read.ok()) return read.status();
    for (storage::LogRecord& one : *read) {
      next = one.position + 1;
      v1::Record record;
      if (decode_record(one.value, place.log().cell, &record) != Decoded::kOk || !record.has_submitted())
        continue;
      out.push_back({std::move(one.key), record.type(), record.format(), std::move(one.value)});
    }
  }
  return out;
}

absl::StatusOr<double> raw_per_s(const Place& place, const std::vector<LogEntry>& records, uint64_t batch) {
  const auto count = static_cast<double>(records.size());
  if (place.log().kind == LogAddress::Kind::kKafka) {
    auto kafka = RawKafka::open(place.log().brokers, place.raw_topic());
    if (!kafka.ok()) return kafka.status();
    auto seconds = (*kafka)->seconds_for(records);
    if (!seconds.ok()) return seconds.status();
    return count / *seconds;
  }
  const std::vector<std::string> groups = groups_of(records, batch);
  RawFile file(place.raw_file());
  const StopWatch watch;
  for (const std::string& group : groups) {
    if (absl::Status bad = file.append(group); !bad.ok()) return bad;
  }
  return count / watch.seconds();
}

absl::StatusOr<std::vector<double>> raw_latencies_ms(const Place& place,
                                                     const std::vector<LogEntry>& records) {
  if (place.log().kind == LogAddress::Kind::kKafka) {
    auto kafka = RawKafka::open(place.log().brokers, place.raw_topic());
    if (!kafka.ok()) return kafka.status();
    return (*kafka)->latencies_ms(records);
  }
  std::vector<double> out;
  RawFile file(place.raw_file());
  for (const std::string& group : groups_of(records, 1)) {
    const StopWatch watch;
    if (absl::Status bad = file.append(group); !bad.ok()) return bad;
    out.push_back(watch.ms());
  }
  return out;
}

}  // namespace muster::bench
