#include "storage/kafka_producer.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "storage/append_queue.h"

namespace muster::storage {
namespace {

constexpr int kDeliveryTimeoutMs = 30000;
constexpr int kPollMs = 100;
constexpr size_t kRecordsMax = 500 * 1000;
constexpr std::chrono::seconds kCloseWait{5};

// The library's own queue is larger than ours, so that ours is the one that refuses.
const KafkaClient::Settings kSettings = {
    {"enable.idempotence", "true"},
    {"acks", "all"},
    {"linger.ms", "1"},
    {"message.timeout.ms", std::to_string(kDeliveryTimeoutMs)},
    {"queue.buffering.max.messages", "1000000"},
    {"queue.buffering.max.kbytes", "262144"},
    {"message.max.bytes", "1000000"},
};

}  // namespace

const KafkaClient::Settings& kafka_producer_settings() {
  return kSettings;
}

absl::StatusOr<std::unique_ptr<KafkaProducer>> KafkaProducer::open(const std::string& brokers,
                                                                   const std::string& topic) {
  std::unique_ptr<KafkaProducer> producer(new KafkaProducer(brokers, topic));
  absl::Status status = producer->start();
  if (!status.ok()) return status;
  return producer;
}

KafkaProducer::~KafkaProducer() {
  if (client_ == nullptr) {  // a recover() that failed left none; only refusals wait
    finish_groups();
    return;
  }
  {
    std::unique_lock lock(mutex_);
    drained_.wait_for(lock, kCloseWait, [this] { return groups_.empty(); });
  }
  stop();
}

absl::Status KafkaProducer::start() {
  absl::StatusOr<std::unique_ptr<KafkaClient>> client =
      KafkaClient::open(RD_KAFKA_PRODUCER, brokers_, kSettings, &KafkaProducer::on_delivery, this);
  if (!client.ok()) return client.status();
  rd_kafka_topic_t* topic = rd_kafka_topic_new((*client)->handle(), topic_name_.c_str(), nullptr);
  if (topic == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kafka topic \"", topic_name_, "\": ", rd_kafka_err2str(rd_kafka_last_error())));
  }
  std::lock_guard lock(mutex_);
  client_ = std::move(*client);
  topic_ = topic;
  reports_ = rd_kafka_queue_get_main(client_->handle());
  stopping_ = false;
  thread_ = std::thread([this] { poll(); });
  return absl::OkStatus();
}

void KafkaProducer::stop() {
  rd_kafka_purge(client_->handle(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  {
    std::unique_lock lock(mutex_);
    drained_.wait(lock, [this] { return groups_.empty(); });
    stopping_ = true;
  }
  rd_kafka_queue_yield(reports_);
  thread_.join();
  std::lock_guard lock(mutex_);
  rd_kafka_queue_destroy(std::exchange(reports_, nullptr));
  rd_kafka_topic_destroy(topic_);
  client_.reset();
}

absl::Status KafkaProducer::recover() {
  std::lock_guard recovering(recover_mutex_);
  {
    std::lock_guard lock(mutex_);
    if (!refusing_) return absl::OkStatus();
  }
  if (client_ != nullptr) stop();
  absl::Status status = start();
  if (!status.ok()) return status;
  std::lock_guard lock(mutex_);
  refusing_ = false;
  return absl::OkStatus();
}

absl::Status KafkaProducer::check_queue(const std::vector<LogEntry>& entries, size_t bytes) const {
  if (refusing_) {
    return absl::UnavailableError(
        "the log refuses appends: an earlier one had an unknown outcome; recover first");
  }
  if (records_ + entries.size() > kRecordsMax || bytes_ + bytes > kQueueBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the log's queue holds ", records_, " records of ", bytes_, " bytes; at most ", kRecordsMax, " of ",
        kQueueBytesMax, " may wait. Try again later, or with a smaller group"));
  }
  return absl::OkStatus();
}

void KafkaProducer::append(std::vector<LogEntry> entries, Log::Done done) {
  auto group = std::make_unique<Group>();
  group->done = std::move(done);
  group->refusal = check_group(entries);
  std::lock_guard lock(mutex_);
  const size_t bytes = group_bytes(entries);
  if (group->refusal.ok()) group->refusal = check_queue(entries, bytes);
  if (group->refusal.ok()) {
    group->records = group->reports_left = entries.size();
    group->bytes = bytes;
    produce(entries, group.get());
  }
  records_ += group->records;
  bytes_ += group->bytes;
  const bool finished = group->reports_left == 0;
  groups_.push_back(std::move(group));
  // Without a producer, just now, the next one's thread finishes what it finds.
  if (finished && reports_ != nullptr) rd_kafka_queue_yield(reports_);
}

void KafkaProducer::produce(const std::vector<LogEntry>& entries, Group* group) {
  for (size_t i = 0; i < entries.size(); ++i) {
    const LogEntry& entry = entries[i];
    rd_kafka_headers_t* headers = rd_kafka_headers_new(2);
    const std::string format = std::to_string(entry.format);
    rd_kafka_header_add(headers, "type", 4, entry.type.data(), static_cast<ssize_t>(entry.type.size()));
    rd_kafka_header_add(headers, "format", 6, format.data(), static_cast<ssize_t>(format.size()));
    rd_kafka_resp_err_t error = rd_kafka_producev(
        client_->handle(), RD_KAFKA_V_RKT(topic_), RD_KAFKA_V_PARTITION(0),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(entry.key.data(), entry.key.size()),
        RD_KAFKA_V_VALUE(const_cast<char*>(entry.value.data()), entry.value.size()),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(group), RD_KAFKA_V_END);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    rd_kafka_headers_destroy(headers);  // stays ours on failure
    group->error = rd_kafka_err2str(error);
    group->not_stored += entries.size() - i;
    group->reports_left -= entries.size() - i;
    return;
  }
}

void KafkaProducer::on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
  auto* producer = static_cast<KafkaProducer*>(self);
  auto* group = static_cast<Group*>(message->_private);
  std::lock_guard lock(producer->mutex_);
  --group->reports_left;
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    ++group->stored;
    return;
  }
  if (rd_kafka_message_status(message) == RD_KAFKA_MSG_STATUS_NOT_PERSISTED) ++group->not_stored;
  if (group->error.empty()) group->error = rd_kafka_err2str(message->err);
}

// Called with mutex_ held.
absl::Status KafkaProducer::outcome(const Group& group) {
  if (!group.refusal.ok()) return group.refusal;
  if (group.stored == group.records) return absl::OkStatus();
  const std::string last = client_->last_error();
  std::string message = absl::StrCat("Kafka at ", brokers_, ", topic ", topic_name_, ": ", group.error,
                                     last.empty() ? "" : "; last error: ", last);
  char fatal[256];
  const bool given_up =
      rd_kafka_fatal_error(client_->handle(), fatal, sizeof fatal) != RD_KAFKA_RESP_ERR_NO_ERROR;
  if (given_up) absl::StrAppend(&message, "; fatal: ", fatal);
  if (group.not_stored == group.records && (!given_up || refusing_)) return absl::UnavailableError(message);
  refusing_ = true;
  return absl::UnknownError(message);
}

void KafkaProducer::finish_groups() {
  while (true) {
    Log::Done done;
    absl::Status status;
    {
      std::lock_guard lock(mutex_);
      if (groups_.empty() || groups_.front()->reports_left > 0) return;
      status = outcome(*groups_.front());
      done = std::move(groups_.front()->done);
    }
    if (done) done(status);
    std::lock_guard lock(mutex_);
    records_ -= groups_.front()->records;
    bytes_ -= groups_.front()->bytes;
    groups_.pop_front();
    if (groups_.empty()) drained_.notify_all();
  }
}

void KafkaProducer::poll() {
  while (true) {
    rd_kafka_poll(client_->handle(), kPollMs);
    finish_groups();
    std::lock_guard lock(mutex_);
    if (stopping_ && groups_.empty()) return;
  }
}

}  // namespace muster::storage
