// Opens the log that a `--log` flag names: `embedded:DIR`, `kafka:BROKERS/CELL` or `memory:`.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/log.h"

namespace muster::storage {

struct LogAddress {
  enum class Kind { kMemory, kEmbedded, kKafka };
  Kind kind = Kind::kMemory;
  std::string directory;  // embedded
  std::string brokers;    // Kafka: host:port[,…]
  std::string cell;       // Kafka: the topic; embedded: "local"
};

// kInvalidArgument says what was wrong and what the three forms are.
absl::StatusOr<LogAddress> parse_log_address(const std::string& text);

enum class LogMode {
  kWrite,     // the embedded log is locked by its one writer; Kafka's topic is made if missing and checked
  kReadOnly,  // reads beside a live writer; append() fails with kUnavailable
};
// `*notice`, if given, gets what an operator should know of an open that went well: a torn tail that was cut.
absl::StatusOr<std::unique_ptr<Log>> open_log(const LogAddress& address, LogMode mode,
                                              std::string* notice = nullptr);

}  // namespace muster::storage
