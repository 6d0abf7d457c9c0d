// The append side of kafka_log: an idempotent producer and the thread that takes its delivery reports.
//
// A group is done when the report of each of its records is in. librdkafka sends again by itself, without
// duplicates, for kDeliveryTimeoutMs; after that, and after its fatal errors, what is in the log is not
// known: the producer is given up, and recover() makes another. Nothing is ever sent again by us.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/kafka_client.h"
#include "storage/log.h"

namespace muster::storage {

// Beside those of KafkaClient: what a cell's records are produced with.
const KafkaClient::Settings& kafka_producer_settings();

class KafkaProducer {
 public:
  static absl::StatusOr<std::unique_ptr<KafkaProducer>> open(const std::string& brokers,
                                                             const std::string& topic);
  ~KafkaProducer();  // waits some seconds for what is queued, then gives it up

  void append(std::vector<LogEntry> group, Log::Done done);
  absl::Status recover();  // see Log

 private:
  struct Group {
    size_t records = 0;
    size_t bytes = 0;
    size_t reports_left = 0;
    size_t stored = 0;
    size_t not_stored = 0;  // certainly; what is neither may be in the log or not
    std::string error;
    absl::Status refusal;
    Log::Done done;
  };

  KafkaProducer(std::string brokers, std::string topic)
      : brokers_(std::move(brokers)), topic_name_(std::move(topic)) {}
  absl::Status start();
  void stop();  // gives up what is still queued
  void poll();
  void produce(const std::vector<LogEntry>& entries, Group* group);
  absl::Status check_queue(const std::vector<LogEntry>& entries, size_t bytes) const;
  absl::Status outcome(const Group& group);
  void finish_groups();
  static void on_delivery(rd_kafka_t* handle, const rd_kafka_message_t* message, void* self);

  const std::string brokers_;
  const std::string topic_name_;
  std::unique_ptr<KafkaClient> client_;
  rd_kafka_topic_t* topic_ = nullptr;
  rd_kafka_queue_t* reports_ = nullptr;
  std::thread thread_;

  std::mutex recover_mutex_;  // one recover() at a time
  std::mutex mutex_;          // of all below
  std::condition_variable drained_;
  std::deque<std::unique_ptr<Group>> groups_;  // in append order
  size_t records_ = 0, bytes_ = 0;             // of groups_
  bool refusing_ = false;                      // since a kUnknown, until recover()
  bool stopping_ = false;
};

}  // namespace muster::storage
