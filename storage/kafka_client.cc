#include "storage/kafka_client.h"

#include "absl/strings/str_cat.h"

namespace muster::storage {
namespace {

const KafkaClient::Settings kShared = {
    {"client.id", "muster"},           {"socket.nagle.disable", "true"},
    {"reconnect.backoff.ms", "20"},    {"reconnect.backoff.max.ms", "200"},
    {"retry.backoff.ms", "20"},        {"topic.metadata.refresh.fast.interval.ms", "50"},
    {"log.connection.close", "false"},
};

// Errors are kept by on_error and told in statuses; the library's own lines repeat them on stderr.
void drop_log_line(const rd_kafka_t*, int, const char*, const char*) {}

}  // namespace

absl::StatusOr<std::unique_ptr<KafkaClient>> KafkaClient::open(rd_kafka_type_t type,
                                                               const std::string& brokers,
                                                               const Settings& settings,
                                                               DeliveryReport on_delivery, void* opaque) {
  std::unique_ptr<KafkaClient> client(new KafkaClient(brokers));
  client->delivery_report_ = on_delivery;
  client->delivery_opaque_ = opaque;
  std::unique_ptr<rd_kafka_conf_t, decltype(&rd_kafka_conf_destroy)> conf(rd_kafka_conf_new(),
                                                                          rd_kafka_conf_destroy);
  char error[512];
  Settings all = kShared;
  all.emplace_back("bootstrap.servers", brokers);
  all.insert(all.end(), settings.begin(), settings.end());
  for (const auto& [name, value] : all) {
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), error, sizeof error) != RD_KAFKA_CONF_OK) {
      return absl::InvalidArgumentError(absl::StrCat("Kafka client setting ", name, "=", value, ": ", error));
    }
  }
  rd_kafka_conf_set_opaque(conf.get(), client.get());
  rd_kafka_conf_set_error_cb(conf.get(), &KafkaClient::on_error);
  rd_kafka_conf_set_log_cb(conf.get(), &drop_log_line);
  if (on_delivery != nullptr) rd_kafka_conf_set_dr_msg_cb(conf.get(), &KafkaClient::on_delivery);
  client->handle_ = rd_kafka_new(type, conf.get(), error, sizeof error);
  if (client->handle_ == nullptr) return absl::InvalidArgumentError(absl::StrCat("Kafka client: ", error));
  (void)conf.release();  // rd_kafka_new took it
  return client;
}

KafkaClient::~KafkaClient() {
  if (handle_ != nullptr) rd_kafka_destroy(handle_);
}

std::string KafkaClient::last_error() const {
  std::lock_guard lock(mutex_);
  return last_error_;
}

bool KafkaClient::take_all_down() {
  std::lock_guard lock(mutex_);
  return std::exchange(all_down_, false);
}

void KafkaClient::on_error(rd_kafka_t*, int error, const char* reason, void* client) {
  auto* self = static_cast<KafkaClient*>(client);
  std::lock_guard lock(self->mutex_);
  if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
    self->all_down_ = true;
    if (!self->last_error_.empty()) return;  // says more
  }
  self->last_error_ = reason;
}

void KafkaClient::on_delivery(rd_kafka_t* handle, const rd_kafka_message_t* message, void* client) {
  auto* self = static_cast<KafkaClient*>(client);
  self->delivery_report_(handle, message, self->delivery_opaque_);
}

}  // namespace muster::storage
