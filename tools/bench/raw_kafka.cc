#include "tools/bench/raw_kafka.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/kafka_producer.h"
#include "storage/kafka_reader.h"
#include "storage/kafka_topic.h"
#include "tools/bench/measure.h"

namespace muster::bench {
namespace {

constexpr int kDeadlineMs = 30'000;
constexpr size_t kConsumeBatch = 1'000;

absl::Status failure(const std::string& what) {
  return absl::UnavailableError(
      absl::StrCat("raw Kafka: ", what, ": ", rd_kafka_err2str(rd_kafka_last_error())));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RawKafka>> RawKafka::open(const std::string& brokers,
                                                         const std::string& topic) {
  auto queries = storage::KafkaClient::open(RD_KAFKA_CONSUMER, brokers, {});
  if (!queries.ok()) return queries.status();
  if (absl::Status made = storage::prepare_kafka_topic(**queries, topic, true); !made.ok()) return made;
  std::unique_ptr<RawKafka> out(new RawKafka);
  auto producer = storage::KafkaClient::open(RD_KAFKA_PRODUCER, brokers, storage::kafka_producer_settings(),
                                             &RawKafka::on_delivery, out.get());
  if (!producer.ok()) return producer.status();
  out->producer_ = *std::move(producer);
  auto consumer = storage::KafkaClient::open(RD_KAFKA_CONSUMER, brokers, storage::kafka_reader_settings());
  if (!consumer.ok()) return consumer.status();
  out->consumer_ = *std::move(consumer);
  out->to_ = rd_kafka_topic_new(out->producer_->handle(), topic.c_str(), nullptr);
  out->from_ = rd_kafka_topic_new(out->consumer_->handle(), topic.c_str(), nullptr);
  if (out->to_ == nullptr || out->from_ == nullptr) return failure("topic " + topic);
  out->queue_ = rd_kafka_queue_new(out->consumer_->handle());
  if (rd_kafka_consume_start_queue(out->from_, 0, 0, out->queue_) != 0)
    return failure("cannot consume " + topic);
  return out;
}

RawKafka::~RawKafka() {
  if (queue_ != nullptr) {
    rd_kafka_consume_stop(from_, 0);
    rd_kafka_queue_destroy(queue_);
  }
  if (from_ != nullptr) rd_kafka_topic_destroy(from_);
  if (to_ != nullptr) rd_kafka_topic_destroy(to_);
}

void RawKafka::on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
  auto* raw = static_cast<RawKafka*>(self);
  ++(message->err == RD_KAFKA_RESP_ERR_NO_ERROR ? raw->delivered_ : raw->failed_);
}

absl::Status RawKafka::produce(const storage::LogEntry& record) {
  while (true) {
    rd_kafka_headers_t* headers = rd_kafka_headers_new(2);
    const std::string format = std::to_string(record.format);
    rd_kafka_header_add(headers, "type", 4, record.type.data(), static_cast<ssize_t>(record.type.size()));
    rd_kafka_header_add(headers, "format", 6, format.data(), static_cast<ssize_t>(format.size()));
    const rd_kafka_resp_err_t error = rd_kafka_producev(
        producer_->handle(), RD_KAFKA_V_RKT(to_), RD_KAFKA_V_PARTITION(0),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(record.key.data(), record.key.size()),
        RD_KAFKA_V_VALUE(const_cast<char*>(record.value.data()), record.value.size()),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return absl::OkStatus();
    rd_kafka_headers_destroy(headers);
    if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL)
      return absl::UnavailableError(absl::StrCat("raw Kafka: cannot produce: ", rd_kafka_err2str(error)));
    rd_kafka_poll(producer_->handle(), 10);
  }
}

absl::Status RawKafka::consume(size_t records) {
  rd_kafka_message_t* messages[kConsumeBatch];
  const StopWatch watch;
  while (records > 0) {
    const ssize_t count =
        rd_kafka_consume_batch_queue(queue_, 10, messages, std::min(records, kConsumeBatch));
    for (ssize_t i = 0; i < count; ++i) {
      if (messages[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR) --records;
      rd_kafka_message_destroy(messages[i]);
    }
    if (records > 0 && (watch.ms() > 10 * kDeadlineMs || failed_ > 0))
      return absl::UnavailableError(absl::StrCat("raw Kafka: ", records, " records were not consumed; ",
                                                 failed_.load(), " not delivered"));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> RawKafka::seconds_for(const std::vector<storage::LogEntry>& records) {
  const size_t before = delivered_;
  const StopWatch watch;
  absl::Status produced;
  std::thread producer([&] {
    for (size_t i = 0; i < records.size() && produced.ok(); ++i) {
      produced = produce(records[i]);
      if (i % 1'000 == 0) rd_kafka_poll(producer_->handle(), 0);
    }
    rd_kafka_flush(producer_->handle(), kDeadlineMs);
  });
  const absl::Status consumed = consume(records.size());
  producer.join();
  const double seconds = watch.seconds();
  if (!produced.ok()) return produced;
  if (!consumed.ok()) return consumed;
  if (delivered_ - before != records.size())
    return absl::UnavailableError("raw Kafka: not all was acknowledged");
  return seconds;
}

absl::StatusOr<std::vector<double>> RawKafka::latencies_ms(const std::vector<storage::LogEntry>& records) {
  std::vector<double> out;
  for (const storage::LogEntry& record : records) {
    const StopWatch watch;
    if (absl::Status bad = produce(record); !bad.ok()) return bad;
    rd_kafka_message_t* message = rd_kafka_consume_queue(queue_, kDeadlineMs);
    const bool arrived = message != nullptr && message->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (message != nullptr) rd_kafka_message_destroy(message);
    if (!arrived) return absl::UnavailableError("raw Kafka: a record did not arrive");
    out.push_back(watch.ms());
    rd_kafka_poll(producer_->handle(), 0);
  }
  return out;
}

void delete_topics(const std::string& brokers, const std::vector<std::string>& topics) {
  auto client = storage::KafkaClient::open(RD_KAFKA_CONSUMER, brokers, {});
  if (!client.ok()) return;
  std::vector<rd_kafka_DeleteTopic_t*> wanted;
  for (const std::string& topic : topics) wanted.push_back(rd_kafka_DeleteTopic_new(topic.c_str()));
  rd_kafka_queue_t* answers = rd_kafka_queue_new((*client)->handle());
  rd_kafka_DeleteTopics((*client)->handle(), wanted.data(), wanted.size(), nullptr, answers);
  rd_kafka_event_t* answer = rd_kafka_queue_poll(answers, kDeadlineMs);
  if (answer != nullptr) rd_kafka_event_destroy(answer);
  rd_kafka_queue_destroy(answers);
  rd_kafka_DeleteTopic_destroy_array(wanted.data(), wanted.size());
}

}  // namespace muster::bench
