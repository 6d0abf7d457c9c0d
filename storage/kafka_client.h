// One librdkafka handle with the settings that every client of a cell's log shares (docs of each setting:
// librdkafka's CONFIGURATION.md). Owns the handle; keeps the last error that the library told of, for
// messages to people.
#pragma once

#include <librdkafka/rdkafka.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::storage {

class KafkaClient {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;
  using DeliveryReport = void (*)(rd_kafka_t*, const rd_kafka_message_t*, void* opaque);

  // `on_delivery` is a producer's; it gets `opaque`. kInvalidArgument: a setting that librdkafka refuses.
  static absl::StatusOr<std::unique_ptr<KafkaClient>> open(rd_kafka_type_t type, const std::string& brokers,
                                                           const Settings& settings,
                                                           DeliveryReport on_delivery = nullptr,
                                                           void* opaque = nullptr);
  ~KafkaClient();

  rd_kafka_t* handle() const { return handle_; }
  const std::string& brokers() const { return brokers_; }
  // What the library last complained of, or "".
  std::string last_error() const;
  // Whether every broker has been unreachable since the last call. Told by poll().
  bool take_all_down();

 private:
  explicit KafkaClient(std::string brokers) : brokers_(std::move(brokers)) {}
  static void on_error(rd_kafka_t* handle, int error, const char* reason, void* client);
  static void on_delivery(rd_kafka_t* handle, const rd_kafka_message_t* message, void* client);

  const std::string brokers_;
  rd_kafka_t* handle_ = nullptr;
  DeliveryReport delivery_report_ = nullptr;
  void* delivery_opaque_ = nullptr;
  mutable std::mutex mutex_;
  std::string last_error_;
  bool all_down_ = false;
};

}  // namespace muster::storage
