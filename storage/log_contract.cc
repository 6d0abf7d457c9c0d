#include "storage/log_contract.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "muster/v1/record.pb.h"

namespace muster::storage {
namespace {

constexpr std::chrono::seconds kDeadline{60};

std::string log_opened(int64_t base) {
  v1::Record record;
  record.mutable_log_opened()->set_base(base);
  return record.SerializeAsString();
}

std::vector<LogEntry> group_of(int count, const std::string& prefix) {
  std::vector<LogEntry> group;
  for (int i = 0; i < count; ++i) group.push_back(entry(absl::StrCat(prefix, i)));
  return group;
}

}  // namespace

LogEntry entry(const std::string& value, const std::string& key) {
  return {key, "Submitted", 1, value};
}

absl::Status append_and_wait(Log& log, std::vector<LogEntry> group) {
  auto outcome = std::make_shared<std::promise<absl::Status>>();
  std::future<absl::Status> future = outcome->get_future();
  log.append(std::move(group), [outcome](absl::Status status) { outcome->set_value(std::move(status)); });
  if (future.wait_for(kDeadline) != std::future_status::ready)
    return absl::DeadlineExceededError("no callback");
  return future.get();
}

std::vector<LogRecord> read_records(LogReader& reader, size_t count) {
  std::vector<LogRecord> out;
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (out.size() < count && std::chrono::steady_clock::now() < deadline) {
    absl::StatusOr<std::vector<LogRecord>> records = reader.read(count - out.size(), 200);
    if (absl::IsUnavailable(records.status())) continue;
    if (!records.ok()) {
      ADD_FAILURE() << records.status();
      return out;
    }
    for (LogRecord& record : *records) out.push_back(std::move(record));
  }
  EXPECT_EQ(out.size(), count);
  return out;
}

std::vector<LogRecord> read_log(Log& log, int64_t position, size_t count) {
  absl::StatusOr<std::unique_ptr<LogReader>> reader = log.open_reader(position);
  if (!reader.ok()) {
    ADD_FAILURE() << reader.status();
    return {};
  }
  return read_records(**reader, count);
}

absl::Status read_error(LogReader& reader) {
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (std::chrono::steady_clock::now() < deadline) {
    absl::Status status = reader.read(100, 200).status();
    if (!status.ok() && !absl::IsUnavailable(status)) return status;
  }
  return absl::OkStatus();
}

std::vector<std::string> values(const std::vector<LogRecord>& records) {
  std::vector<std::string> out;
  for (const LogRecord& record : records) out.push_back(record.value);
  return out;
}

void LogContract::SetUp() {
  std::string why_not;
  place_ = GetParam().make(&why_not);
  if (place_ == nullptr) GTEST_SKIP() << why_not;
  log_ = place_->open();
  ASSERT_NE(log_, nullptr);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LogContract);

TEST_P(LogContract, EmptyLogHasNoRecordsAndNoEnd) {
  EXPECT_EQ(*log_->end(), 0);
  EXPECT_EQ(*log_->first(), 0);
  auto reader = log_->open_reader(0);
  ASSERT_TRUE(reader.ok()) << reader.status();
  auto records = (*reader)->read(10, 1);
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_TRUE(records->empty());
}

TEST_P(LogContract, ReadsBackWhatWasAppendedInOrder) {
  ASSERT_TRUE(append_and_wait(*log_, group_of(3, "a")).ok());
  ASSERT_TRUE(append_and_wait(*log_, group_of(2, "b")).ok());
  EXPECT_EQ(*log_->end(), 5);
  const std::vector<LogRecord> records = read_log(*log_, 0, 5);
  EXPECT_THAT(values(records), testing::ElementsAre("a0", "a1", "a2", "b0", "b1"));
  for (size_t i = 1; i < records.size(); ++i) {
    EXPECT_EQ(records[i].position, static_cast<int64_t>(i));
    EXPECT_GE(records[i].timestamp_ms, records[i - 1].timestamp_ms);
    EXPECT_EQ(records[i].key, "job/1");
  }
}

TEST_P(LogContract, ReaderStartsAnywhereAndFollows) {
  ASSERT_TRUE(append_and_wait(*log_, group_of(4, "a")).ok());
  auto reader = log_->open_reader(2);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT(values(read_records(**reader, 2)), testing::ElementsAre("a2", "a3"));
  auto at_end = log_->open_reader(4);
  ASSERT_TRUE(at_end.ok()) << at_end.status();
  ASSERT_TRUE(append_and_wait(*log_, group_of(1, "b")).ok());
  EXPECT_THAT(values(read_records(**reader, 1)), testing::ElementsAre("b0"));
  EXPECT_THAT(values(read_records(**at_end, 1)), testing::ElementsAre("b0"));
}

TEST_P(LogContract, ReadTakesNoMoreThanAsked) {
  ASSERT_TRUE(append_and_wait(*log_, group_of(10, "a")).ok());
  auto reader = log_->open_reader(0);
  ASSERT_TRUE(reader.ok()) << reader.status();
  size_t seen = 0;
  while (seen < 10) {
    auto records = (*reader)->read(3, 1000);
    ASSERT_TRUE(records.ok()) << records.status();
    EXPECT_LE(records->size(), 3u);
    seen += records->size();
  }
}

TEST_P(LogContract, PositionPastTheEndIsOutOfRange) {
  ASSERT_TRUE(append_and_wait(*log_, group_of(2, "a")).ok());
  auto reader = log_->open_reader(7);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const absl::Status status = read_error(**reader);
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
}

TEST_P(LogContract, KeysAndValuesAreBytes) {
  const std::string bytes("\0\xff\n\0", 4);
  ASSERT_TRUE(append_and_wait(*log_, {entry(bytes, bytes), entry("", "k"), entry("v", "")}).ok());
  const std::vector<LogRecord> records = read_log(*log_, 0, 3);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[0].key, bytes);
  EXPECT_EQ(records[0].value, bytes);
  EXPECT_EQ(records[1].value, "");
  EXPECT_EQ(records[2].key, "");
}

TEST_P(LogContract, EmptyGroupIsDone) {
  EXPECT_TRUE(append_and_wait(*log_, {}).ok());
  EXPECT_EQ(*log_->end(), 0);
}

TEST_P(LogContract, LargestRecordIsTakenAndALargerOneRefusedWhole) {
  const std::string largest(kRecordBytesMax - 1, 'x');
  ASSERT_TRUE(append_and_wait(*log_, {entry(largest, "k")}).ok());
  const absl::Status status = append_and_wait(*log_, {entry("small", "k"), entry(largest + "y", "k")});
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("record k has 900001 bytes of key and value; at most 900000 are allowed"));
  ASSERT_TRUE(append_and_wait(*log_, {entry("after")}).ok());
  const std::vector<LogRecord> records = read_log(*log_, 0, 2);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].value, largest);
  EXPECT_EQ(records[1].value, "after");
}

TEST_P(LogContract, FullQueueRefusesAndTakesAgain) {
  std::vector<LogEntry> too_much(80, entry(std::string(kRecordBytesMax - 10, 'x')));
  const absl::Status status = append_and_wait(*log_, std::move(too_much));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(*log_->end(), 0);
  EXPECT_TRUE(append_and_wait(*log_, {entry("a")}).ok());
}

TEST_P(LogContract, WakeEndsARead) {
  auto reader = log_->open_reader(0);
  ASSERT_TRUE(reader.ok()) << reader.status();
  (*reader)->wake();
  auto records = (*reader)->read(1, 3600 * 1000);  // woken before
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_TRUE(records->empty());
  std::thread waker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    (*reader)->wake();
  });
  records = (*reader)->read(1, 3600 * 1000);  // woken within
  waker.join();
  ASSERT_TRUE(records.ok()) << records.status();
  EXPECT_TRUE(records->empty());
}

TEST_P(LogContract, AppendEndsARead) {
  auto reader = log_->open_reader(0);
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::thread appender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(append_and_wait(*log_, {entry("a")}).ok());
  });
  EXPECT_THAT(values(read_records(**reader, 1)), testing::ElementsAre("a"));
  appender.join();
}

TEST_P(LogContract, AppendersKeepTheirOrderAndCallbacksTheLogs) {
  constexpr int kThreads = 4, kGroups = 40, kRecords = 5;
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  std::array<std::vector<int>, kThreads> callbacks;  // only the log's one thread writes them
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int g = 0; g < kGroups; ++g) {
        log_->append(group_of(kRecords, absl::StrCat(t, "/", g, "/")), [&, t, g](absl::Status status) {
          EXPECT_TRUE(status.ok()) << status;
          callbacks[static_cast<size_t>(t)].push_back(g);
          ++done;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (done < kThreads * kGroups && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  ASSERT_EQ(done, kThreads * kGroups);
  for (const std::vector<int>& order : callbacks) EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  std::map<char, std::vector<std::string>> by_thread;
  for (const LogRecord& record : read_log(*log_, 0, kThreads * kGroups * kRecords)) {
    by_thread[record.value[0]].push_back(record.value);
  }
  for (int t = 0; t < kThreads; ++t) {
    std::vector<std::string> expected;
    for (int g = 0; g < kGroups; ++g) {
      for (int i = 0; i < kRecords; ++i) expected.push_back(absl::StrCat(t, "/", g, "/", i));
    }
    EXPECT_EQ(by_thread[static_cast<char>('0' + t)], expected);
  }
}

TEST_P(LogContract, CallbackMayAppend) {
  std::promise<absl::Status> second;
  log_->append({entry("a")}, [&](absl::Status) {
    log_->append({entry("b")}, [&](absl::Status status) { second.set_value(std::move(status)); });
  });
  EXPECT_TRUE(second.get_future().get().ok());
  EXPECT_THAT(values(read_log(*log_, 0, 2)), testing::ElementsAre("a", "b"));
}

TEST_P(LogContract, EveryCallbackComesBeforeTheLogIsGone) {
  std::atomic<int> done{0};
  for (int i = 0; i < 200; ++i) {
    log_->append(group_of(3, "a"), [&](absl::Status) { ++done; });
  }
  log_.reset();
  EXPECT_EQ(done, 200);
}

TEST_P(LogContract, FirstRecordGivesTheBase) {
  ASSERT_TRUE(append_and_wait(*log_, {entry(log_opened(1000), "cell"), entry("b")}).ok());
  EXPECT_EQ(*log_->first(), 1000);
  EXPECT_EQ(*log_->end(), 1002);
  const std::vector<LogRecord> records = read_log(*log_, 1001, 1);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].position, 1001);
  EXPECT_EQ(records[0].value, "b");
  auto before = log_->open_reader(0);
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_TRUE(absl::IsOutOfRange(read_error(**before)));
  if (!place_->survives_reopening()) return;
  log_.reset();
  log_ = place_->open();
  EXPECT_EQ(*log_->first(), 1000);
  EXPECT_EQ(*log_->end(), 1002);
  EXPECT_THAT(values(read_log(*log_, 1001, 1)), testing::ElementsAre("b"));
}

TEST_P(LogContract, GoesOnAfterReopening) {
  if (!place_->survives_reopening()) GTEST_SKIP() << "nothing survives a log in memory";
  ASSERT_TRUE(append_and_wait(*log_, group_of(3, "a")).ok());
  log_.reset();
  log_ = place_->open();
  EXPECT_EQ(*log_->end(), 3);
  ASSERT_TRUE(append_and_wait(*log_, group_of(2, "b")).ok());
  EXPECT_THAT(values(read_log(*log_, 0, 5)), testing::ElementsAre("a0", "a1", "a2", "b0", "b1"));
  EXPECT_THAT(values(read_log(*log_, 3, 2)), testing::ElementsAre("b0", "b1"));
}

TEST_P(LogContract, RecoverWithoutAFailureChangesNothing) {
  ASSERT_TRUE(append_and_wait(*log_, group_of(2, "a")).ok());
  EXPECT_TRUE(log_->recover().ok());
  ASSERT_TRUE(append_and_wait(*log_, group_of(1, "b")).ok());
  EXPECT_THAT(values(read_log(*log_, 0, 3)), testing::ElementsAre("a0", "a1", "b0"));
}

}  // namespace muster::storage
