// The log: one ordered, durable stream of records; the only truth of a cell. Three implementations pass one
// contract test (log_contract_test.cc): memory_log (tests), embedded_log (one machine) and kafka_log.
//
// Positions are `base + offset`, where base comes from the first record (LogOpened.base, 0 for a new log),
// and grow by one with each record. Timestamps are the log's own, in milliseconds: Kafka's LogAppendTime, or
// the writer's monotonic clock; only differences of neighbours mean anything.
//
// Threading: append() may be called from any thread and never blocks on I/O; callbacks come from a thread of
// the log's own and must not block. A reader belongs to one thread, except for wake().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::storage {

// A record is at most so large (key + value), checked before it is appended.
inline constexpr size_t kRecordBytesMax = 900 * 1000;

struct LogEntry {
  std::string key;   // entity id
  std::string type;  // header `type`
  uint32_t format = 1;
  std::string value;  // a serialised muster.v1.Record
};

struct LogRecord {
  int64_t position = 0;
  int64_t timestamp_ms = 0;
  std::string key;
  std::string value;
};

// Reads on from where it was opened, each record once and in order, only what is durable.
class LogReader {
 public:
  virtual ~LogReader() = default;
  // The next records, at most `records_max`; waits up to timeout_ms for the first. Empty: none came in time,
  // or wake(). kOutOfRange: the log no longer has (or never had) the position: it was truncated or rewritten.
  // kDataLoss: damage, with file and offset. kUnavailable: no broker now; call again.
  virtual absl::StatusOr<std::vector<LogRecord>> read(size_t records_max, int timeout_ms) = 0;
  // Makes a read() in progress, or the next one, return at once. Any thread.
  virtual void wake() = 0;
};

class Log {
 public:
  virtual ~Log() = default;

  // Appends a group in order, after all that was appended before. `done` is called exactly once:
  //   OK            every record of the group is durable
  //   kUnavailable  none of the group is in the log, nor ever will be
  //   kUnknown      some of it may be in the log. The log then refuses every append (kUnavailable) until
  //   recover(). kInvalidArgument  a record is over kRecordBytesMax; none was appended kResourceExhausted the
  //   queue is full; none was appended
  using Done = std::function<void(absl::Status)>;
  virtual void append(std::vector<LogEntry> group, Done done) = 0;

  // After kUnknown: makes the log accept appends again. What was in flight is in the log or not; read to see.
  // May wait for I/O; never from a callback.
  virtual absl::Status recover() = 0;

  virtual absl::StatusOr<std::unique_ptr<LogReader>> open_reader(int64_t position) = 0;

  // The position after the last durable record; equal to first() when the log is empty.
  virtual absl::StatusOr<int64_t> end() = 0;
  // The oldest position that can still be read.
  virtual absl::StatusOr<int64_t> first() = 0;

  // True when no other writer can exist while this object lives (embedded: locked; memory).
  virtual bool exclusive() const = 0;
};

}  // namespace muster::storage
