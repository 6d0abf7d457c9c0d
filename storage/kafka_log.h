// The log in Kafka: one topic with one partition per cell (kafka_topic.h), an idempotent producer
// (kafka_producer.h), readers at positions of their own (kafka_reader.h). Record keys are entity ids; headers
// `type` and `format` (decimal text). Several servers may write one topic: exclusive() is false.
//
// A broker that is away is waited for: appends for 30 s, readers for as long as it takes.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/log.h"
#include "storage/open_log.h"

namespace muster::storage {

// kUnavailable: no broker answers. kFailedPrecondition: the topic has another setting than a log needs.
// kNotFound: kReadOnly, and there is no such topic.
absl::StatusOr<std::unique_ptr<Log>> open_kafka_log(const std::string& brokers, const std::string& topic,
                                                    LogMode mode);

}  // namespace muster::storage
