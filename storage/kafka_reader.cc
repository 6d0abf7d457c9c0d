#include "storage/kafka_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "storage/kafka_client.h"
#include "storage/opened_base.h"

namespace muster::storage {
namespace {

constexpr size_t kBatchMax = 10000;

const KafkaClient::Settings kSettings = {
    {"auto.offset.reset", "error"},
    {"check.crcs", "true"},
    {"enable.auto.offset.store", "false"},
    {"isolation.level", "read_uncommitted"},  // a stranger's open transaction must not stop the cell
    {"fetch.error.backoff.ms", "20"},
    {"fetch.message.max.bytes", "4194304"},
    {"queued.min.messages", "200000"},
    {"queued.max.messages.kbytes", "65536"},
};

class KafkaReader : public LogReader {
 public:
  KafkaReader(std::unique_ptr<KafkaClient> client, std::string topic, int64_t base, int64_t position)
      : client_(std::move(client)), topic_name_(std::move(topic)), base_(base), next_(position) {}

  ~KafkaReader() override {
    if (topic_ != nullptr) {
      if (consuming_) rd_kafka_consume_stop(topic_, 0);
      rd_kafka_topic_destroy(topic_);
    }
    if (queue_ != nullptr) rd_kafka_queue_destroy(queue_);
  }

  absl::Status start() {
    topic_ = rd_kafka_topic_new(client_->handle(), topic_name_.c_str(), nullptr);
    if (topic_ == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("Kafka topic \"", topic_name_, "\": ", rd_kafka_err2str(rd_kafka_last_error())));
    }
    queue_ = rd_kafka_queue_new(client_->handle());
    const int64_t offset = next_ - std::max<int64_t>(base_, 0);
    if (offset < 0) {
      failure_ = absl::OutOfRangeError(
          absl::StrCat(where(), " begins at position ", base_, "; position ", next_, " was asked for"));
      return absl::OkStatus();
    }
    if (rd_kafka_consume_start_queue(topic_, 0, offset, queue_) != 0) {
      return absl::UnavailableError(
          absl::StrCat(where(), " cannot be read: ", rd_kafka_err2str(rd_kafka_last_error())));
    }
    consuming_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<LogRecord>> read(size_t records_max, int timeout_ms) override {
    if (!failure_.ok()) return failure_;
    rd_kafka_poll(client_->handle(), 0);
    std::vector<LogRecord> out;
    rd_kafka_message_t* messages[kBatchMax];
    const size_t batch = std::min(records_max, kBatchMax);
    // A batch call waits until the batch is full, so the first record is waited for alone.
    ssize_t count = rd_kafka_consume_batch_queue(queue_, timeout_ms, messages, std::min<size_t>(batch, 1));
    if (count == 1 && batch > 1) {
      count += std::max<ssize_t>(0, rd_kafka_consume_batch_queue(queue_, 0, messages + 1, batch - 1));
    }
    absl::Status passing;
    out.reserve(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    for (ssize_t i = 0; i < count; ++i) {
      if (failure_.ok()) {
        absl::Status status = take(*messages[i], &out);
        if (!status.ok()) passing = status;
      }
      rd_kafka_message_destroy(messages[i]);
    }
    if (!out.empty()) return out;
    if (!failure_.ok()) return failure_;
    if (!passing.ok()) return passing;
    if (client_->take_all_down()) {
      return absl::UnavailableError(
          absl::StrCat(where(), ": no broker can be reached; ", client_->last_error()));
    }
    return out;
  }

  void wake() override { rd_kafka_queue_yield(queue_); }

 private:
  std::string where() const {
    return absl::StrCat("Kafka at ", client_->brokers(), ", topic ", topic_name_, ", partition 0");
  }

  // Adds a record, or keeps a failure that is final in failure_; returns one that passes.
  absl::Status take(const rd_kafka_message_t& message, std::vector<LogRecord>* out) {
    if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR) return take_error(message);
    const std::string_view value(static_cast<const char*>(message.payload), message.len);
    if (base_ == kBaseUnknown) {
      const int64_t base = message.offset == 0 ? opened_base(value) : 0;
      if (base > 0) {
        failure_ = absl::OutOfRangeError(absl::StrCat(where(), " begins at position ", base));
        return absl::OkStatus();
      }
      base_ = 0;
    }
    rd_kafka_timestamp_type_t type;
    const int64_t timestamp_ms = rd_kafka_message_timestamp(&message, &type);
    const int64_t position = base_ + message.offset;
    if (type != RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME) {
      failure_ = absl::DataLossError(absl::StrCat(where(), ": the record at position ", position,
                                                  " has no LogAppendTime; it was written while the topic's "
                                                  "message.timestamp.type was something else"));
      return absl::OkStatus();
    }
    if (position != next_) {
      failure_ = absl::DataLossError(absl::StrCat(where(), ": position ", position, " follows ", next_ - 1,
                                                  "; records are missing, or are a transaction's markers"));
      return absl::OkStatus();
    }
    out->push_back({position, timestamp_ms,
                    std::string(static_cast<const char*>(message.key), message.key_len), std::string(value)});
    ++next_;
    return absl::OkStatus();
  }

  absl::Status take_error(const rd_kafka_message_t& message) {
    const std::string text =
        absl::StrCat(where(), ", position ", next_, ": ", rd_kafka_message_errstr(&message));
    switch (message.err) {
      case RD_KAFKA_RESP_ERR__PARTITION_EOF:
        return absl::OkStatus();
      case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
      case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
        failure_ = absl::OutOfRangeError(text);
        return absl::OkStatus();
      case RD_KAFKA_RESP_ERR__BAD_MSG:
      case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
      case RD_KAFKA_RESP_ERR_INVALID_MSG:
        failure_ = absl::DataLossError(text);
        return absl::OkStatus();
      default:
        return absl::UnavailableError(text);
    }
  }

  const std::unique_ptr<KafkaClient> client_;
  const std::string topic_name_;
  int64_t base_;
  int64_t next_;
  rd_kafka_topic_t* topic_ = nullptr;
  rd_kafka_queue_t* queue_ = nullptr;
  bool consuming_ = false;
  absl::Status failure_;  // once set, every read() answers it
};

}  // namespace

const KafkaClient::Settings& kafka_reader_settings() {
  return kSettings;
}

absl::StatusOr<std::unique_ptr<LogReader>> open_kafka_reader(const std::string& brokers,
                                                             const std::string& topic, int64_t base,
                                                             int64_t position) {
  absl::StatusOr<std::unique_ptr<KafkaClient>> client =
      KafkaClient::open(RD_KAFKA_CONSUMER, brokers, kSettings);
  if (!client.ok()) return client.status();
  auto reader = std::make_unique<KafkaReader>(std::move(*client), topic, base, position);
  absl::Status status = reader->start();
  if (!status.ok()) return status;
  return reader;
}

}  // namespace muster::storage
