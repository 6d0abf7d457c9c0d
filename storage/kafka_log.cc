#include "storage/kafka_log.h"

#include <chrono>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "storage/append_queue.h"
#include "storage/kafka_client.h"
#include "storage/kafka_producer.h"
#include "storage/kafka_reader.h"
#include "storage/kafka_topic.h"
#include "storage/opened_base.h"

namespace muster::storage {
namespace {

constexpr int kQueryMs = 10000;

struct Offsets {
  int64_t low = 0;
  int64_t high = 0;
};

class KafkaLog : public Log {
 public:
  KafkaLog(std::string brokers, std::string topic, std::unique_ptr<KafkaClient> queries,
           std::unique_ptr<KafkaProducer> producer)
      : brokers_(std::move(brokers)),
        topic_(std::move(topic)),
        queries_(std::move(queries)),
        producer_(std::move(producer)) {
    if (producer_ != nullptr) return;
    refuse_ = std::make_unique<AppendQueue>([](const AppendQueue::Groups&) {
      return absl::UnavailableError("the Kafka log is open for reading only");
    });
  }

  void append(std::vector<LogEntry> group, Done done) override {
    if (producer_ != nullptr) {
      producer_->append(std::move(group), std::move(done));
    } else {
      refuse_->append(std::move(group), std::move(done));
    }
  }

  absl::Status recover() override { return producer_ != nullptr ? producer_->recover() : absl::OkStatus(); }

  absl::StatusOr<std::unique_ptr<LogReader>> open_reader(int64_t position) override {
    int64_t base;
    {
      std::lock_guard lock(mutex_);
      base = base_;
    }
    if (base == kBaseUnknown) {
      absl::StatusOr<Offsets> at = offsets();
      if (!at.ok()) return at.status();
      absl::StatusOr<int64_t> found = find_base(*at);
      if (!found.ok()) return found.status();
      base = *found;
    }
    return open_kafka_reader(brokers_, topic_, base, position);
  }

  absl::StatusOr<int64_t> end() override { return position_of(&Offsets::high); }
  absl::StatusOr<int64_t> first() override { return position_of(&Offsets::low); }
  bool exclusive() const override { return false; }

 private:
  absl::StatusOr<Offsets> offsets() {
    rd_kafka_poll(queries_->handle(), 0);
    Offsets out;
    rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(queries_->handle(), topic_.c_str(), 0,
                                                                 &out.low, &out.high, kQueryMs);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return out;
    return absl::UnavailableError(absl::StrCat("Kafka at ", brokers_, ", topic ", topic_,
                                               ": cannot ask where the log ends: ", rd_kafka_err2str(error)));
  }

  absl::StatusOr<int64_t> position_of(int64_t Offsets::*which) {
    absl::StatusOr<Offsets> at = offsets();
    if (!at.ok()) return at.status();
    absl::StatusOr<int64_t> base = find_base(*at);
    if (!base.ok()) return base.status();
    return std::max<int64_t>(*base, 0) + (*at).*which;
  }

  // The base, once there is a first record; kBaseUnknown before.
  absl::StatusOr<int64_t> find_base(const Offsets& at) {
    std::lock_guard lock(mutex_);
    if (base_ != kBaseUnknown || at.low == at.high) return base_;
    absl::StatusOr<std::unique_ptr<LogReader>> reader = open_kafka_reader(brokers_, topic_, 0, at.low);
    if (!reader.ok()) return reader.status();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kQueryMs);
    while (std::chrono::steady_clock::now() < deadline) {
      absl::StatusOr<std::vector<LogRecord>> records = (*reader)->read(1, 500);
      if (!records.ok() && !absl::IsUnavailable(records.status())) return records.status();
      if (records.ok() && !records->empty()) {
        base_ = opened_base(records->front().value);
        return base_;
      }
    }
    return absl::UnavailableError(
        absl::StrCat("Kafka at ", brokers_, ", topic ", topic_, ": its first record cannot be read"));
  }

  const std::string brokers_;
  const std::string topic_;
  const std::unique_ptr<KafkaClient> queries_;
  const std::unique_ptr<KafkaProducer> producer_;  // null: read only
  std::unique_ptr<AppendQueue> refuse_;            // read only: where refusals are answered from
  std::mutex mutex_;
  int64_t base_ = kBaseUnknown;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Log>> open_kafka_log(const std::string& brokers, const std::string& topic,
                                                    LogMode mode) {
  absl::StatusOr<std::unique_ptr<KafkaClient>> queries = KafkaClient::open(RD_KAFKA_CONSUMER, brokers, {});
  if (!queries.ok()) return queries.status();
  absl::Status status = prepare_kafka_topic(**queries, topic, /*create=*/mode == LogMode::kWrite);
  if (!status.ok()) return status;
  std::unique_ptr<KafkaProducer> producer;
  if (mode == LogMode::kWrite) {
    absl::StatusOr<std::unique_ptr<KafkaProducer>> opened = KafkaProducer::open(brokers, topic);
    if (!opened.ok()) return opened.status();
    producer = std::move(*opened);
  }
  return std::make_unique<KafkaLog>(brokers, topic, std::move(*queries), std::move(producer));
}

}  // namespace muster::storage
