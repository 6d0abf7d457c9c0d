// What Kafka can do with the same bytes and plain librdkafka, with the settings that the cell's log uses: one
// producer and one consumer in this process.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/kafka_client.h"
#include "storage/log.h"

namespace muster::bench {

class RawKafka {
 public:
  // Makes the topic, with a cell's settings.
  static absl::StatusOr<std::unique_ptr<RawKafka>> open(const std::string& brokers, const std::string& topic);
  ~RawKafka();

  // Produces all at once, and consumes them back. Seconds until all are acknowledged and consumed.
  absl::StatusOr<double> seconds_for(const std::vector<storage::LogEntry>& records);
  // One after another: milliseconds from produce to consumed, each.
  absl::StatusOr<std::vector<double>> latencies_ms(const std::vector<storage::LogEntry>& records);

 private:
  RawKafka() = default;
  absl::Status produce(const storage::LogEntry& record);
  absl::Status consume(size_t records);
  static void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* self);

  std::unique_ptr<storage::KafkaClient> producer_, consumer_;
  rd_kafka_topic_t* to_ = nullptr;
  rd_kafka_topic_t* from_ = nullptr;
  rd_kafka_queue_t* queue_ = nullptr;
  std::atomic<size_t> delivered_{0}, failed_{0};
};

// Of a bench's; what can't be deleted is left.
void delete_topics(const std::string& brokers, const std::vector<std::string>& topics);

}  // namespace muster::bench
