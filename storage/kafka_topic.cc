#include "storage/kafka_topic.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "storage/log.h"

namespace muster::storage {
namespace {

constexpr int kTimeoutMs = 10000;
constexpr int kReplicationMax = 3;
// A record, its headers and the batch around it.
constexpr int64_t kMessageBytesMin = kRecordBytesMax + 10 * 1000;

struct Wanted {
  const char* name;
  const char* value;
  const char* why;
};
constexpr Wanted kWanted[] = {
    {"cleanup.policy", "delete", "compaction would drop history"},
    {"retention.ms", "-1", "the log is the only truth and must not expire"},
    {"retention.bytes", "-1", "the log is the only truth and must not expire"},
    {"message.timestamp.type", "LogAppendTime", "cell time is derived from the log's own timestamps"},
    {"unclean.leader.election.enable", "false", "an unclean election loses acknowledged records"},
};

template <typename T, void (*destroy)(T*)>
struct Destroy {
  void operator()(T* object) const { destroy(object); }
};
template <typename T, void (*destroy)(T*)>
using Owned = std::unique_ptr<T, Destroy<T, destroy>>;
using Event = Owned<rd_kafka_event_t, rd_kafka_event_destroy>;
using Queue = Owned<rd_kafka_queue_t, rd_kafka_queue_destroy>;
using Options = Owned<rd_kafka_AdminOptions_t, rd_kafka_AdminOptions_destroy>;

struct TopicShape {
  bool exists = false;
  bool has_leader = false;
  int partitions = 0;
  int replicas = 0;
  int brokers = 0;
};

absl::Status unavailable(const KafkaClient& client, const std::string& what, const std::string& why) {
  rd_kafka_poll(client.handle(), 0);  // brings last_error() up to date
  const std::string last = client.last_error();
  return absl::UnavailableError(absl::StrCat("Kafka at ", client.brokers(), ": ", what, ": ", why,
                                             last.empty() ? "" : "; last error: ", last));
}

absl::StatusOr<TopicShape> describe(const KafkaClient& client, const std::string& topic) {
  const rd_kafka_metadata_t* metadata = nullptr;
  // All topics are asked for, since asking for one by its name makes it where the broker makes topics by
  // itself.
  rd_kafka_resp_err_t error = rd_kafka_metadata(client.handle(), 1, nullptr, &metadata, kTimeoutMs);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return unavailable(client, "no metadata", rd_kafka_err2str(error));
  TopicShape shape;
  shape.brokers = metadata->broker_cnt;
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    const rd_kafka_metadata_topic& found = metadata->topics[i];
    if (topic != found.topic) continue;
    shape.exists = true;
    shape.partitions = found.partition_cnt;
    if (found.partition_cnt > 0) {
      shape.replicas = found.partitions[0].replica_cnt;
      shape.has_leader = found.partitions[0].leader >= 0;
    }
  }
  rd_kafka_metadata_destroy(metadata);
  return shape;
}

absl::StatusOr<Event> admin_result(const KafkaClient& client, rd_kafka_queue_t* queue,
                                   const std::string& what) {
  Event event(rd_kafka_queue_poll(queue, kTimeoutMs + 5000));
  if (event == nullptr) return unavailable(client, what, "no answer");
  if (rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return unavailable(client, what, rd_kafka_event_error_string(event.get()));
  }
  return event;
}

absl::StatusOr<Options> admin_options(const KafkaClient& client, rd_kafka_admin_op_t operation) {
  Options options(rd_kafka_AdminOptions_new(client.handle(), operation));
  char error[256];
  if (rd_kafka_AdminOptions_set_request_timeout(options.get(), kTimeoutMs, error, sizeof error) !=
      RD_KAFKA_RESP_ERR_NO_ERROR) {
    return absl::InternalError(absl::StrCat("Kafka client: ", error));
  }
  return options;
}

absl::Status create_topic(const KafkaClient& client, const std::string& topic, int brokers) {
  const int replication = std::clamp(brokers, 1, kReplicationMax);
  char error[256] = "";
  Owned<rd_kafka_NewTopic_t, rd_kafka_NewTopic_destroy> wanted(
      rd_kafka_NewTopic_new(topic.c_str(), 1, replication, error, sizeof error));
  if (wanted == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("Kafka topic \"", topic, "\": ", error));
  }
  for (const Wanted& setting : kWanted)
    rd_kafka_NewTopic_set_config(wanted.get(), setting.name, setting.value);
  rd_kafka_NewTopic_set_config(wanted.get(), "max.message.bytes", "1048588");
  if (replication == kReplicationMax) rd_kafka_NewTopic_set_config(wanted.get(), "min.insync.replicas", "2");
  absl::StatusOr<Options> options = admin_options(client, RD_KAFKA_ADMIN_OP_CREATETOPICS);
  if (!options.ok()) return options.status();
  Queue queue(rd_kafka_queue_new(client.handle()));
  rd_kafka_NewTopic_t* topics[] = {wanted.get()};
  rd_kafka_CreateTopics(client.handle(), topics, 1, options->get(), queue.get());
  absl::StatusOr<Event> event = admin_result(client, queue.get(), "cannot make topic " + topic);
  if (!event.ok()) return event.status();
  size_t count = 0;
  const rd_kafka_topic_result_t** results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event->get()), &count);
  if (count != 1) return unavailable(client, "cannot make topic " + topic, "an empty answer");
  const rd_kafka_resp_err_t result = rd_kafka_topic_result_error(results[0]);
  if (result == RD_KAFKA_RESP_ERR_NO_ERROR || result == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
    return absl::OkStatus();
  }
  const char* why = rd_kafka_topic_result_error_string(results[0]);
  return absl::FailedPreconditionError(absl::StrCat("Kafka at ", client.brokers(), " refuses to make topic ",
                                                    topic, ": ",
                                                    why != nullptr ? why : rd_kafka_err2str(result)));
}

absl::StatusOr<std::map<std::string, std::string>> read_settings(const KafkaClient& client,
                                                                 const std::string& topic) {
  const std::string what = "cannot read the settings of topic " + topic;
  absl::StatusOr<Options> options = admin_options(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
  if (!options.ok()) return options.status();
  Owned<rd_kafka_ConfigResource_t, rd_kafka_ConfigResource_destroy> resource(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
  Queue queue(rd_kafka_queue_new(client.handle()));
  rd_kafka_ConfigResource_t* resources[] = {resource.get()};
  rd_kafka_DescribeConfigs(client.handle(), resources, 1, options->get(), queue.get());
  absl::StatusOr<Event> event = admin_result(client, queue.get(), what);
  if (!event.ok()) return event.status();
  size_t count = 0;
  const rd_kafka_ConfigResource_t** answers =
      rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event->get()), &count);
  if (count != 1) return unavailable(client, what, "an empty answer");
  if (rd_kafka_ConfigResource_error(answers[0]) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return unavailable(client, what, rd_kafka_err2str(rd_kafka_ConfigResource_error(answers[0])));
  }
  std::map<std::string, std::string> settings;
  const rd_kafka_ConfigEntry_t** entries = rd_kafka_ConfigResource_configs(answers[0], &count);
  for (size_t i = 0; i < count; ++i) {
    const char* value = rd_kafka_ConfigEntry_value(entries[i]);
    settings[rd_kafka_ConfigEntry_name(entries[i])] = value != nullptr ? value : "";
  }
  return settings;
}

absl::Status wrong_setting(const KafkaClient& client, const std::string& topic, const std::string& name,
                           const std::string& is, const std::string& must_be, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(
      "Kafka topic ", topic, " has ", name, "=", is, "; a cell's log needs ", name, "=", must_be, ": ", why,
      ". Set it: kafka-configs.sh --bootstrap-server ", client.brokers(),
      " --alter --entity-type topics --entity-name ", topic, " --add-config ", name, "=", must_be));
}

absl::Status check_settings(const KafkaClient& client, const std::string& topic, const TopicShape& shape) {
  if (shape.partitions != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("Kafka topic ", topic, " has ", shape.partitions,
                     " partitions; a cell's log needs exactly 1, which is its order. Name another cell"));
  }
  absl::StatusOr<std::map<std::string, std::string>> settings = read_settings(client, topic);
  if (!settings.ok()) return settings.status();
  for (const Wanted& wanted : kWanted) {
    const std::string& is = (*settings)[wanted.name];
    if (is != wanted.value) return wrong_setting(client, topic, wanted.name, is, wanted.value, wanted.why);
  }
  int64_t bytes = 0;
  const std::string& bytes_text = (*settings)["max.message.bytes"];
  if (!absl::SimpleAtoi(bytes_text, &bytes) || bytes < kMessageBytesMin) {
    return wrong_setting(client, topic, "max.message.bytes", bytes_text, "1048588",
                         "a record has up to 900,000 bytes");
  }
  int insync = 0;
  const std::string& insync_text = (*settings)["min.insync.replicas"];
  if (shape.replicas >= kReplicationMax && (!absl::SimpleAtoi(insync_text, &insync) || insync < 2)) {
    return wrong_setting(client, topic, "min.insync.replicas", insync_text, "2",
                         "an acknowledged record must be on two brokers");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status prepare_kafka_topic(const KafkaClient& client, const std::string& topic, bool create) {
  absl::StatusOr<TopicShape> shape = describe(client, topic);
  if (!shape.ok()) return shape.status();
  if (!shape->exists) {
    if (!create)
      return absl::NotFoundError(absl::StrCat("Kafka at ", client.brokers(), " has no topic ", topic));
    absl::Status status = create_topic(client, topic, shape->brokers);
    if (!status.ok()) return status;
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kTimeoutMs);
  while (!shape->has_leader) {  // of a topic that was made just now, or whose broker is starting
    if (std::chrono::steady_clock::now() > deadline) {
      return unavailable(client, "topic " + topic, "its partition has no leader");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    shape = describe(client, topic);
    if (!shape.ok()) return shape.status();
  }
  return check_settings(client, topic, *shape);
}

}  // namespace muster::storage
