// The contract of Log as one test that every implementation passes (log_contract.cc): each instantiates it
// with a place of its own.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "storage/log.h"

namespace muster::storage {

// Somewhere a log lives, empty at first. open() may be called again once the log before is gone.
class LogPlace {
 public:
  virtual ~LogPlace() = default;
  virtual std::unique_ptr<Log> open() = 0;
  virtual bool survives_reopening() const { return true; }
};

// null: cannot be tested here; `*why_not` says why, and the test is skipped.
struct LogPlaceCase {
  std::string name;
  std::function<std::unique_ptr<LogPlace>(std::string* why_not)> make;
};

class LogContract : public testing::TestWithParam<LogPlaceCase> {
 protected:
  void SetUp() override;

  std::unique_ptr<LogPlace> place_;
  std::unique_ptr<Log> log_;
};

inline std::string case_name(const testing::TestParamInfo<LogPlaceCase>& info) {
  return info.param.name;
}

LogEntry entry(const std::string& value, const std::string& key = "job/1");
// Appends, and waits for the outcome.
absl::Status append_and_wait(Log& log, std::vector<LogEntry> group);
// Reads until `count` records are there, or fails the test after a generous deadline.
std::vector<LogRecord> read_records(LogReader& reader, size_t count);
std::vector<LogRecord> read_log(Log& log, int64_t position, size_t count);
// The first outcome of read() that is an error.
absl::Status read_error(LogReader& reader);
std::vector<std::string> values(const std::vector<LogRecord>& records);

}  // namespace muster::storage
