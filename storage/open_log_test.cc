#include "storage/open_log.h"

#include <gtest/gtest.h>

namespace muster::storage {
namespace {

std::string error_of(const std::string& text) {
  absl::StatusOr<LogAddress> address = parse_log_address(text);
  EXPECT_TRUE(absl::IsInvalidArgument(address.status())) << text;
  return std::string(address.status().message());
}

constexpr char kForms[] =
    ". It is one of embedded:DIR, kafka:BROKERS/CELL (kafka:127.0.0.1:9092/lab), memory:";

TEST(ParseLogAddress, TakesTheThreeForms) {
  EXPECT_EQ(parse_log_address("memory:")->kind, LogAddress::Kind::kMemory);
  const LogAddress embedded = *parse_log_address("embedded:/var/lib/a:b");
  EXPECT_EQ(embedded.kind, LogAddress::Kind::kEmbedded);
  EXPECT_EQ(embedded.directory, "/var/lib/a:b");
  EXPECT_EQ(embedded.cell, "local");
  const LogAddress kafka = *parse_log_address("kafka:a:9092,b:9092/gpu-lab.1");
  EXPECT_EQ(kafka.kind, LogAddress::Kind::kKafka);
  EXPECT_EQ(kafka.brokers, "a:9092,b:9092");
  EXPECT_EQ(kafka.cell, "gpu-lab.1");
}

TEST(ParseLogAddress, SaysWhatIsWrong) {
  EXPECT_EQ(error_of("memory"), std::string("--log \"memory\": there is no \":\"") + kForms);
  EXPECT_EQ(error_of("memory:x"), std::string("--log \"memory:x\": nothing may follow \"memory:\"") + kForms);
  EXPECT_EQ(error_of("embedded:"), std::string("--log \"embedded:\": the directory is missing") + kForms);
  EXPECT_EQ(error_of("file:x"), std::string("--log \"file:x\": \"file\" is no kind of log") + kForms);
  EXPECT_EQ(error_of("kafka:a:1"), std::string("--log \"kafka:a:1\": the cell is missing") + kForms);
  EXPECT_EQ(error_of("kafka:/c"), std::string("--log \"kafka:/c\": the brokers are missing") + kForms);
  EXPECT_EQ(
      error_of("kafka:a:1/c d"),
      std::string("--log \"kafka:a:1/c d\": cell \"c d\" must be 1 to 200 of a-z A-Z 0-9 . _ -") + kForms);
}

TEST(OpenLog, OpensALogInMemory) {
  auto log = open_log(*parse_log_address("memory:"), LogMode::kWrite);
  ASSERT_TRUE(log.ok());
  EXPECT_TRUE((*log)->exclusive());
}

}  // namespace
}  // namespace muster::storage
