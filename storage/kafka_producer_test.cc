// What the producer says when brokers fail it, on librdkafka's mock cluster.
#include "storage/kafka_producer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka_mock.h>

#include <future>

#include "storage/log_contract.h"

namespace muster::storage {
namespace {

constexpr int16_t kProduce = 0;  // Kafka's ApiKey
constexpr char kTopic[] = "cell";

class KafkaProducerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto client = KafkaClient::open(RD_KAFKA_PRODUCER, "127.0.0.1:1", {});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = std::move(*client);
    cluster_ = rd_kafka_mock_cluster_new(client_->handle(), 1);
    ASSERT_EQ(rd_kafka_mock_topic_create(cluster_, kTopic, 1, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
    brokers_ = rd_kafka_mock_cluster_bootstraps(cluster_);
    auto producer = KafkaProducer::open(brokers_, kTopic);
    ASSERT_TRUE(producer.ok()) << producer.status();
    producer_ = std::move(*producer);
  }
  void TearDown() override {
    producer_.reset();
    rd_kafka_mock_cluster_destroy(cluster_);
  }

  std::future<absl::Status> append(std::vector<LogEntry> group) {
    auto outcome = std::make_shared<std::promise<absl::Status>>();
    producer_->append(std::move(group),
                      [outcome](absl::Status status) { outcome->set_value(std::move(status)); });
    return outcome->get_future();
  }

  std::unique_ptr<KafkaClient> client_;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  std::string brokers_;
  std::unique_ptr<KafkaProducer> producer_;
};

TEST_F(KafkaProducerTest, PassingErrorsAreWaitedOut) {
  rd_kafka_mock_push_request_errors(cluster_, kProduce, 3, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
                                    RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                                    RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
  EXPECT_TRUE(append({entry("a"), entry("b")}).get().ok());
}

TEST_F(KafkaProducerTest, FatalErrorIsUnknownUntilRecovered) {
  ASSERT_TRUE(append({entry("a")}).get().ok());
  rd_kafka_mock_push_request_errors(cluster_, kProduce, 1, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
  const absl::Status unknown = append({entry("b")}).get();
  EXPECT_TRUE(absl::IsUnknown(unknown)) << unknown;
  EXPECT_THAT(std::string(unknown.message()), testing::HasSubstr("topic cell: "));
  const absl::Status refused = append({entry("c")}).get();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("recover first"));
  ASSERT_TRUE(producer_->recover().ok());
  EXPECT_TRUE(append({entry("d")}).get().ok());
}

TEST_F(KafkaProducerTest, CertainRefusalIsUnavailableAndTheNextGroupMayPass) {
  ASSERT_TRUE(append({entry("a")}).get().ok());
  rd_kafka_mock_push_request_errors(cluster_, kProduce, 1, RD_KAFKA_RESP_ERR_INVALID_RECORD);
  const absl::Status refused = append({entry("b"), entry("c")}).get();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  const absl::Status next = append({entry("d")}).get();
  EXPECT_TRUE(next.ok()) << next;
}

TEST_F(KafkaProducerTest, RecordThatWasSentAndNeverAnsweredIsUnknown) {
  ASSERT_TRUE(append({entry("a")}).get().ok());
  rd_kafka_mock_broker_set_rtt(cluster_, -1, 3600 * 1000);
  std::future<absl::Status> first = append({entry("b")});
  const absl::Status unknown = first.get();  // after the delivery timeout
  EXPECT_TRUE(absl::IsUnknown(unknown)) << unknown;
  rd_kafka_mock_broker_set_rtt(cluster_, -1, 0);
  ASSERT_TRUE(producer_->recover().ok());
  EXPECT_TRUE(append({entry("c")}).get().ok());
}

TEST_F(KafkaProducerTest, ClosingWhileTheBrokerIsAwayAnswersEveryGroup) {
  rd_kafka_mock_broker_set_down(cluster_, -1);
  std::future<absl::Status> never_sent = append({entry("a")});
  producer_.reset();
  const absl::Status status = never_sent.get();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace muster::storage
