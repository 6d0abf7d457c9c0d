// Against a real broker: integration/kafka/kafka.py run -- kafka_log_test
#include "storage/kafka_log.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>

#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/kafka_client.h"
#include "storage/log_contract.h"

namespace muster::storage {
namespace {

const char* broker() {
  return getenv("MUSTER_KAFKA");
}
constexpr char kNoBroker[] =
    "MUSTER_KAFKA=host:port names no broker: run this with integration/kafka/kafka.py run --";

// A topic's name that no other run has used.
std::string new_topic() {
  static std::random_device random;
  return absl::StrCat("test-", absl::Hex(random()), absl::Hex(random()));
}

class KafkaPlace : public LogPlace {
 public:
  std::unique_ptr<Log> open() override {
    absl::StatusOr<std::unique_ptr<Log>> log = open_kafka_log(broker(), topic_, LogMode::kWrite);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? std::move(*log) : nullptr;
  }

 private:
  const std::string topic_ = new_topic();
};

INSTANTIATE_TEST_SUITE_P(All, LogContract,
                         testing::Values(LogPlaceCase{"kafka",
                                                      [](std::string* why_not) -> std::unique_ptr<LogPlace> {
                                                        *why_not = kNoBroker;
                                                        if (broker() == nullptr) return nullptr;
                                                        return std::make_unique<KafkaPlace>();
                                                      }}),
                         case_name);

class KafkaLog : public testing::Test {
 protected:
  void SetUp() override {
    if (broker() == nullptr) GTEST_SKIP() << kNoBroker;
  }

  // Makes a topic as a stranger would.
  void make_topic(const std::string& topic, int partitions, const KafkaClient::Settings& settings) {
    absl::StatusOr<std::unique_ptr<KafkaClient>> client = KafkaClient::open(RD_KAFKA_PRODUCER, broker(), {});
    ASSERT_TRUE(client.ok());
    char error[256];
    rd_kafka_NewTopic_t* wanted = rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, error, sizeof error);
    for (const auto& [name, value] : settings)
      rd_kafka_NewTopic_set_config(wanted, name.c_str(), value.c_str());
    rd_kafka_queue_t* queue = rd_kafka_queue_new((*client)->handle());
    rd_kafka_CreateTopics((*client)->handle(), &wanted, 1, nullptr, queue);
    rd_kafka_event_t* event = rd_kafka_queue_poll(queue, 30000);
    ASSERT_NE(event, nullptr);
    EXPECT_EQ(rd_kafka_event_error(event), RD_KAFKA_RESP_ERR_NO_ERROR) << rd_kafka_event_error_string(event);
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(wanted);
  }
};

TEST_F(KafkaLog, TopicWithAnotherRetentionIsRefusedWithTheCommand) {
  const std::string topic = new_topic();
  make_topic(topic, 1, {{"message.timestamp.type", "LogAppendTime"}});
  const absl::Status status = open_kafka_log(broker(), topic, LogMode::kWrite).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(
      std::string(status.message()),
      absl::StrCat(
          "Kafka topic ", topic, " has retention.ms=604800000; a cell's log needs retention.ms=-1: the ",
          "log is the only truth and must not expire. Set it: kafka-configs.sh --bootstrap-server ", broker(),
          " --alter --entity-type topics --entity-name ", topic, " --add-config retention.ms=-1"));
}

TEST_F(KafkaLog, TopicWithCreateTimeIsRefused) {
  const std::string topic = new_topic();
  make_topic(topic, 1, {{"retention.ms", "-1"}});
  const absl::Status status = open_kafka_log(broker(), topic, LogMode::kReadOnly).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("needs message.timestamp.type=LogAppendTime"));
}

TEST_F(KafkaLog, TopicWithTwoPartitionsIsRefused) {
  const std::string topic = new_topic();
  make_topic(topic, 2, {});
  const absl::Status status = open_kafka_log(broker(), topic, LogMode::kWrite).status();
  EXPECT_EQ(
      std::string(status.message()),
      absl::StrCat("Kafka topic ", topic,
                   " has 2 partitions; a cell's log needs exactly 1, which is its order. Name another cell"));
}

TEST_F(KafkaLog, ReadOnlyMakesNoTopicAndRefusesAppends) {
  const std::string topic = new_topic();
  const absl::Status missing = open_kafka_log(broker(), topic, LogMode::kReadOnly).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  auto writer = open_kafka_log(broker(), topic, LogMode::kWrite);
  ASSERT_TRUE(writer.ok()) << writer.status();
  auto reader = open_kafka_log(broker(), topic, LogMode::kReadOnly);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(absl::IsUnavailable(append_and_wait(**reader, {entry("a")})));
  ASSERT_TRUE(append_and_wait(**writer, {entry("b")}).ok());
  EXPECT_THAT(values(read_log(**reader, 0, 1)), testing::ElementsAre("b"));
}

TEST_F(KafkaLog, RecordsCarryTypeAndFormatAsHeaders) {
  const std::string topic = new_topic();
  auto log = open_kafka_log(broker(), topic, LogMode::kWrite);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE(append_and_wait(**log, {{"job/7", "Placed", 12, "value"}}).ok());
  auto client = KafkaClient::open(RD_KAFKA_CONSUMER, broker(), {});
  ASSERT_TRUE(client.ok());
  rd_kafka_topic_t* handle = rd_kafka_topic_new((*client)->handle(), topic.c_str(), nullptr);
  rd_kafka_consume_start(handle, 0, 0);
  rd_kafka_message_t* message = rd_kafka_consume(handle, 0, 30000);
  ASSERT_NE(message, nullptr);
  ASSERT_EQ(message->err, RD_KAFKA_RESP_ERR_NO_ERROR);
  rd_kafka_headers_t* headers = nullptr;
  ASSERT_EQ(rd_kafka_message_headers(message, &headers), RD_KAFKA_RESP_ERR_NO_ERROR);
  auto header = [&](const char* name) {
    const void* value = nullptr;
    size_t bytes = 0;
    rd_kafka_header_get_last(headers, name, &value, &bytes);
    return std::string(static_cast<const char*>(value), bytes);
  };
  EXPECT_EQ(header("type"), "Placed");
  EXPECT_EQ(header("format"), "12");
  EXPECT_EQ(std::string(static_cast<char*>(message->key), message->key_len), "job/7");
  rd_kafka_message_destroy(message);
  rd_kafka_consume_stop(handle, 0);
  rd_kafka_topic_destroy(handle);
}

// The broker is killed with SIGKILL and started again under an appender and a reader.
TEST_F(KafkaLog, BrokersCrashLosesAndDoublesNothing) {
  auto log = open_kafka_log(broker(), new_topic(), LogMode::kWrite);
  ASSERT_TRUE(log.ok()) << log.status();
  auto reader = (*log)->open_reader(0);
  ASSERT_TRUE(reader.ok());
  constexpr int kGroups = 300, kCrashAt = 100;
  std::vector<std::string> expected;
  for (int g = 0; g < kGroups; ++g) {
    if (g == kCrashAt) {
      ASSERT_EQ(kill(atoi(getenv("MUSTER_KAFKA_PID")), SIGUSR1), 0);
    }
    expected.push_back(absl::StrCat(g));
    ASSERT_TRUE(append_and_wait(**log, {entry(absl::StrCat(g))}).ok()) << "group " << g;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // so that the crash falls between them
  }
  EXPECT_EQ(values(read_records(**reader, kGroups)), expected);
  EXPECT_EQ(*(*log)->end(), kGroups);
}

TEST(KafkaLogWithoutBroker, OpeningSaysWhichBrokerDoesNotAnswer) {
  const absl::Status status = open_kafka_log("127.0.0.1:1", "cell", LogMode::kWrite).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("Kafka at 127.0.0.1:1: no metadata"));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("Connection refused"));
}

}  // namespace
}  // namespace muster::storage
