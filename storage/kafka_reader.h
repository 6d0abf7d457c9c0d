// Reads a cell's topic from a position of one's own: no consumer group, nothing committed to the broker.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/kafka_client.h"
#include "storage/log.h"

namespace muster::storage {

// The base of a log that was empty when the reader was opened is found in its first record.
inline constexpr int64_t kBaseUnknown = -1;

// Beside those of KafkaClient: what a cell's records are consumed with.
const KafkaClient::Settings& kafka_reader_settings();

absl::StatusOr<std::unique_ptr<LogReader>> open_kafka_reader(const std::string& brokers,
                                                             const std::string& topic, int64_t base,
                                                             int64_t position);

}  // namespace muster::storage
