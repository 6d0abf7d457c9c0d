#include "agent/report_journal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/files.h"

namespace muster::agent {
namespace {

class ReportJournalTest : public ::testing::Test {
 protected:
  ReportJournalTest()
      : path_(absl::StrCat(std::filesystem::temp_directory_path().string(), "/muster-journal-",
                           random_nonzero())) {}
  ~ReportJournalTest() override { std::filesystem::remove(path_); }

  static v1::AgentMessage exited(uint64_t job) {
    v1::AgentMessage message;
    message.mutable_exited()->mutable_member()->set_job(job);
    return message;
  }
  std::unique_ptr<ReportJournal> open(uint64_t incarnation = 7) {
    absl::StatusOr<std::unique_ptr<ReportJournal>> journal = ReportJournal::open(path_, incarnation, &said_);
    status_ = journal.status();
    return journal.ok() ? std::move(*journal) : nullptr;
  }
  void write(size_t reports) {
    auto journal = std::move(*ReportJournal::create(path_, 7));
    for (size_t i = 0; i < reports; ++i) journal->add(exited(i + 1), "n1");
    ASSERT_TRUE(journal->commit().ok());
  }

  const std::string path_;
  std::string said_;
  absl::Status status_;
};

TEST_F(ReportJournalTest, KeepsWhatIsNotAcknowledgedAndGoesOnCounting) {
  {
    auto journal = std::move(*ReportJournal::create(path_, 7));
    for (uint64_t job = 1; job <= 5; ++job) EXPECT_EQ(journal->add(exited(job), "n1"), job);
    journal->acknowledge(3);
    EXPECT_EQ(journal->pending().size(), 2u);
    ASSERT_TRUE(journal->commit().ok());
  }
  auto journal = open();
  ASSERT_NE(journal, nullptr) << status_;
  ASSERT_EQ(journal->pending().size(), 2u);
  EXPECT_EQ(journal->pending().front().sequence, 4u);
  const v1::ReportHeader& header = journal->pending().front().message.exited().report();
  EXPECT_EQ(header.node(), "n1");
  EXPECT_EQ(header.incarnation(), 7u);
  EXPECT_EQ(journal->add(exited(6), "n1"), 6u);
}

TEST_F(ReportJournalTest, AnAcknowledgementOfWhatWasNeverSentCountsForNothing) {
  write(2);
  auto journal = open();
  journal->acknowledge(99);
  EXPECT_EQ(journal->pending().size(), 2u);
  journal->acknowledge(1);
  journal->acknowledge(1);
  EXPECT_EQ(journal->pending().size(), 1u);
}

TEST_F(ReportJournalTest, KnowsWhatIsUnderWay) {
  auto journal = std::move(*ReportJournal::create(path_, 7));
  v1::AgentMessage message = exited(1);
  message.mutable_exited()->mutable_member()->mutable_fence()->set_position(5);
  const v1::MemberRef member = message.exited().member();
  journal->add(message, "n1");
  EXPECT_TRUE(journal->has(member, v1::AgentMessage::kExited));
  EXPECT_FALSE(journal->has(member, v1::AgentMessage::kStarted));
  v1::MemberRef later = member;
  later.mutable_fence()->set_position(6);
  EXPECT_FALSE(journal->has(later, v1::AgentMessage::kExited)) << "another fence is another member";
}

TEST_F(ReportJournalTest, ATornTailIsCutAndSaidAtEveryByte) {
  write(3);
  const std::string whole = *read_file(path_);
  write(2);
  const size_t two = std::filesystem::file_size(path_);
  for (size_t bytes = two + 1; bytes < whole.size(); ++bytes) {
    ASSERT_TRUE(write_atomic(path_, whole.substr(0, bytes)).ok());
    said_.clear();
    auto journal = open();
    ASSERT_NE(journal, nullptr) << "cut at " << bytes << ": " << status_;
    EXPECT_EQ(journal->pending().size(), 2u);
    EXPECT_EQ(said_, absl::StrCat(path_, ": cut a torn report of ", bytes - two, " bytes at byte ", two,
                                  "; it had not been sent"));
    EXPECT_EQ(journal->add(exited(9), "n1"), 3u);
    ASSERT_TRUE(journal->commit().ok());
    said_.clear();
    ASSERT_NE(open(), nullptr) << "what is written after the cut is read again";
    EXPECT_EQ(said_, "");
  }
}

TEST_F(ReportJournalTest, DamageElsewhereIsRefusedAndPlaced) {
  write(3);
  const std::string whole = *read_file(path_);
  std::string damaged = whole;
  damaged[40] ^= 1;
  ASSERT_TRUE(write_atomic(path_, damaged).ok());
  EXPECT_EQ(open(), nullptr);
  EXPECT_EQ(status_, absl::DataLossError(absl::StrCat(path_, " is damaged at byte 25")));
  ASSERT_TRUE(write_atomic(path_, "").ok());
  EXPECT_EQ(open(), nullptr);
  EXPECT_EQ(status_, absl::DataLossError(absl::StrCat(path_, " has no beginning")));
  std::filesystem::remove(path_);
  EXPECT_EQ(open(), nullptr);
  EXPECT_EQ(status_, absl::DataLossError(absl::StrCat(path_, " is missing")));
}

TEST_F(ReportJournalTest, AnotherIncarnationsFileIsNotContinued) {
  write(1);
  EXPECT_EQ(open(8), nullptr);
  EXPECT_TRUE(absl::IsDataLoss(status_));
}

TEST_F(ReportJournalTest, StaysSmallWhenAllIsAcknowledged) {
  auto journal = std::move(*ReportJournal::create(path_, 7));
  v1::AgentMessage large = exited(1);
  large.mutable_exited()->set_message(std::string(1000, 'x'));
  for (uint64_t i = 1; i <= 5000; ++i) {
    journal->add(large, "n1");
    journal->acknowledge(i);
    ASSERT_TRUE(journal->commit().ok());
  }
  EXPECT_LT(std::filesystem::file_size(path_), 1'200'000u);
  journal.reset();
  journal = open();
  ASSERT_NE(journal, nullptr) << status_;
  EXPECT_EQ(journal->add(exited(1), "n1"), 5001u);
}

}  // namespace
}  // namespace muster::agent
