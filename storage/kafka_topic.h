// The topic that is a cell's log: made with the settings that the protocol needs, and refused with any other.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "storage/kafka_client.h"

namespace muster::storage {

// kUnavailable: no broker answered. kNotFound: no such topic, and `create` is false. kFailedPrecondition: it
// has another setting; the message names it, what it must be and the command that sets it.
absl::Status prepare_kafka_topic(const KafkaClient& client, const std::string& topic, bool create);

}  // namespace muster::storage
