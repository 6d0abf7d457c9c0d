// What only the embedded log promises: torn tails, damage, one writer, readers in other processes, failing
// disks.
#include "storage/embedded_log.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "storage/log_contract.h"
#include "storage/segment.h"
#include "storage/temporary_directory.h"

namespace {
std::atomic<bool> fail_next_sync{false};
}

// Takes the C library's place in this program, so that a sync can fail.
extern "C" int fdatasync(int fd) {
  if (!fail_next_sync.exchange(false)) return static_cast<int>(syscall(SYS_fdatasync, fd));
  errno = EIO;
  return -1;
}

namespace muster::storage {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

std::string file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, int64_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(offset);
  file << bytes;
}

class EmbeddedLog : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Log>> open(LogMode mode = LogMode::kWrite) {
    notice_.clear();
    return open_embedded_log(path_, mode, &notice_);
  }
  std::unique_ptr<Log> must_open(LogMode mode = LogMode::kWrite) {
    absl::StatusOr<std::unique_ptr<Log>> log = open(mode);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? std::move(*log) : nullptr;
  }
  // Appends each value as a group of its own; returns the size of the first segment after each.
  std::vector<int64_t> append_each(const std::vector<std::string>& all) {
    std::unique_ptr<Log> log = must_open();
    std::vector<int64_t> sizes;
    for (const std::string& value : all) {
      EXPECT_TRUE(append_and_wait(*log, {entry(value)}).ok());
      sizes.push_back(static_cast<int64_t>(fs::file_size(segment())));
    }
    return sizes;
  }
  std::string segment(int64_t first = 0) const { return segment_path(path_, first); }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/log";
  std::string notice_;
};

TEST_F(EmbeddedLog, TailTornAtAnyByteIsCutAndSaid) {
  const std::vector<int64_t> sizes = append_each({"a", "b", "the last"});
  const std::string whole = file_bytes(segment());
  for (int64_t size = sizes[1] + 1; size < sizes[2]; ++size) {
    std::ofstream(segment(), std::ios::binary | std::ios::trunc)
        << whole.substr(0, static_cast<size_t>(size));
    std::unique_ptr<Log> log = must_open();
    ASSERT_NE(log, nullptr);
    EXPECT_EQ(notice_,
              absl::StrCat("embedded log: cut ", size - sizes[1],
                           " bytes of a group that a crash left unfinished from ", segment(), " at offset ",
                           sizes[1], "; the last position is 1. Nothing that was acknowledged is lost"));
    ASSERT_TRUE(append_and_wait(*log, {entry("c")}).ok());
    ASSERT_THAT(values(read_log(*log, 0, 3)), ElementsAre("a", "b", "c"));
  }
}

TEST_F(EmbeddedLog, LastGroupWithALostPageIsCutWholeFromThere) {
  append_each({"a"});
  const auto torn_at = static_cast<int64_t>(fs::file_size(segment()));
  ASSERT_TRUE(append_and_wait(*must_open(), {entry("b"), entry("c"), entry("d")}).ok());
  write_bytes(segment(), torn_at, std::string(80, '\0'));  // whole frames of the same group follow
  std::unique_ptr<Log> log = must_open();
  ASSERT_NE(log, nullptr);
  EXPECT_THAT(notice_, HasSubstr("the last position is 0"));
  EXPECT_EQ(*log->end(), 1);
}

TEST_F(EmbeddedLog, FourKilobytesZeroedInTheMiddleAreRefused) {
  const std::vector<int64_t> sizes = append_each(std::vector<std::string>(60, std::string(500, 'x')));
  write_bytes(segment(), 16384, std::string(4096, '\0'));
  const std::string before = file_bytes(segment());
  int64_t good = 0;
  while (sizes[static_cast<size_t>(good)] <= 16384) ++good;
  const absl::Status status = open().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(
      std::string(status.message()),
      absl::StrCat(
          "embedded log: ", segment(), " is damaged at offset ", sizes[static_cast<size_t>(good - 1)],
          ": the record of position ", good, " fails its checksum. The last good position is ", good - 1,
          "; records after it that were acknowledged are not readable. Restore the file from a copy"));
  EXPECT_EQ(file_bytes(segment()), before) << "a refusal must change nothing";
}

TEST_F(EmbeddedLog, AnyFlippedByteOfAnAcknowledgedRecordIsRefused) {
  const std::vector<int64_t> sizes = append_each({"first", "damaged", "after"});
  const std::string whole = file_bytes(segment());
  for (int64_t at = sizes[0]; at < sizes[1]; ++at) {
    std::string bytes = whole;
    bytes[static_cast<size_t>(at)] = static_cast<char>(bytes[static_cast<size_t>(at)] ^ 0x20);
    std::ofstream(segment(), std::ios::binary | std::ios::trunc) << bytes;
    const absl::Status status = open().status();
    ASSERT_TRUE(absl::IsDataLoss(status)) << "byte " << at << ": " << status;
    ASSERT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("damaged at offset ", sizes[0], ":")));
  }
}

TEST_F(EmbeddedLog, DamagedHeaderOfTheOnlySegmentIsRefused) {
  append_each({"a"});
  write_bytes(segment(), 0, "X");
  const absl::Status status = open().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("at offset 0: it does not begin with a segment's header"));
}

TEST_F(EmbeddedLog, SegmentThatNeverGotARecordIsRemoved) {
  append_each({"a"});
  std::ofstream(segment(1)) << std::string(10, '\0');
  std::unique_ptr<Log> log = must_open();
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(notice_, absl::StrCat("embedded log: removed ", segment(1),
                                  ", a segment that a crash left without a record"));
  ASSERT_TRUE(append_and_wait(*log, {entry("b")}).ok());
  EXPECT_THAT(values(read_log(*log, 0, 2)), ElementsAre("a", "b"));
}

class TwoSegments : public EmbeddedLog {
 protected:
  void SetUp() override {
    std::unique_ptr<Log> log = must_open();
    for (int i = 0; i < kRecords; ++i) {
      ASSERT_TRUE(append_and_wait(*log, {entry(absl::StrCat(i) + std::string(850 * 1000, 'x'))}).ok());
    }
    auto segments = list_segments(path_);
    ASSERT_TRUE(segments.ok() && segments->size() == 2);
    second_ = segments->back();
  }
  static constexpr int kRecords = 90;
  int64_t second_ = 0;
};

TEST_F(TwoSegments, AreReadAcrossFromAnywhere) {
  std::unique_ptr<Log> log = must_open();
  for (int64_t from : {int64_t{0}, second_ - 1, second_, second_ + 1}) {
    const std::vector<LogRecord> records = read_log(*log, from, static_cast<size_t>(kRecords - from));
    ASSERT_EQ(records.front().position, from);
    ASSERT_EQ(records.front().value.substr(0, 4), (absl::StrCat(from) + "xxxx").substr(0, 4));
    ASSERT_EQ(records.back().position, kRecords - 1);
  }
}

TEST_F(TwoSegments, DamageInAnOldOneIsMetWhenItIsRead) {
  write_bytes(segment(), 20 << 20, std::string(4096, '\0'));
  std::unique_ptr<Log> log = must_open();
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(read_log(*log, second_, 1).size(), 1u);
  auto reader = log->open_reader(0);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(read_records(**reader, 20).size(), 20u);
  const absl::Status status = read_error(**reader);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(segment() + " is damaged at offset "));
}

TEST_F(TwoSegments, OldOneThatWasCutShortIsDamage) {
  fs::resize_file(segment(), fs::file_size(segment()) - 1);
  std::unique_ptr<Log> log = must_open();
  auto reader = log->open_reader(second_ - 3);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(read_records(**reader, 2).size(), 2u);
  const absl::Status status = read_error(**reader);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the file ends inside the record of position"));
}

TEST_F(EmbeddedLog, SecondWriterIsRefusedAndTold) {
  std::unique_ptr<Log> log = must_open();
  const absl::Status status = open().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(std::string(status.message()),
            absl::StrCat("embedded log ", path_, " is in use by another server (pid ", getpid(),
                         "). Stop it, or use another directory"));
  log.reset();
  EXPECT_TRUE(open().ok());
}

// A child process appends, and tells through a pipe what was acknowledged, until it is killed.
void append_until_killed(const std::string& path, int pipe) {
  std::string notice;
  auto log = open_embedded_log(path, LogMode::kWrite, &notice);
  if (!log.ok()) _exit(1);
  for (int i = 0; append_and_wait(**log, {entry(absl::StrCat(i)), entry(absl::StrCat(i))}).ok(); ++i) {
    if (write(pipe, "x", 1) != 1) break;
  }
  _exit(1);
}

TEST_F(EmbeddedLog, WhatAKilledWriterAcknowledgedIsThere) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) append_until_killed(path_, ends[1]);
  close(ends[1]);
  char byte;
  int acknowledged = 0;
  while (acknowledged < 20 && read(ends[0], &byte, 1) == 1) ++acknowledged;
  ASSERT_EQ(acknowledged, 20);
  EXPECT_THAT(std::string(open().status().message()), HasSubstr(absl::StrCat("(pid ", child, ")")));
  std::unique_ptr<Log> beside = must_open(LogMode::kReadOnly);
  EXPECT_EQ(read_log(*beside, 0, 40).size(), 40u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  while (read(ends[0], &byte, 1) == 1) ++acknowledged;
  close(ends[0]);
  std::unique_ptr<Log> log = must_open();
  ASSERT_NE(log, nullptr);
  EXPECT_GE(*log->end(), acknowledged * 2);
  const std::vector<LogRecord> records = read_log(*log, 0, static_cast<size_t>(*log->end()));
  for (size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].value, absl::StrCat(i / 2));
}

TEST_F(EmbeddedLog, ReadOnlyFollowsALivingWriterAndItsSuccessor) {
  std::unique_ptr<Log> writer = must_open();
  ASSERT_TRUE(append_and_wait(*writer, {entry("a")}).ok());
  std::unique_ptr<Log> log = must_open(LogMode::kReadOnly);
  auto reader = log->open_reader(0);
  ASSERT_TRUE(reader.ok());
  EXPECT_THAT(values(read_records(**reader, 1)), ElementsAre("a"));
  ASSERT_TRUE(append_and_wait(*writer, {entry("b")}).ok());
  EXPECT_THAT(values(read_records(**reader, 1)), ElementsAre("b"));
  writer.reset();
  writer = must_open();
  ASSERT_TRUE(append_and_wait(*writer, {entry("c")}).ok());
  EXPECT_THAT(values(read_records(**reader, 1)), ElementsAre("c"));
  EXPECT_EQ(*log->end(), 3);
  EXPECT_EQ(*log->first(), 0);
  EXPECT_TRUE(absl::IsUnavailable(append_and_wait(*log, {entry("d")})));
}

TEST_F(EmbeddedLog, ReadOnlyLeavesATornTailAlone) {
  const std::vector<int64_t> sizes = append_each({"a", "b"});
  fs::resize_file(segment(), static_cast<uintmax_t>(sizes[1] - 3));
  std::unique_ptr<Log> log = must_open(LogMode::kReadOnly);
  EXPECT_EQ(*log->end(), 1);
  EXPECT_THAT(values(read_log(*log, 0, 1)), ElementsAre("a"));
  EXPECT_EQ(static_cast<int64_t>(fs::file_size(segment())), sizes[1] - 3);
}

TEST_F(EmbeddedLog, ReadOnlyNeedsALog) {
  const absl::Status status = open(LogMode::kReadOnly).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(std::string(status.message()), "there is no embedded log at " + path_);
}

TEST_F(EmbeddedLog, FullDiskFailsTheGroupAndLeavesNoTornMiddle) {
  append_each({"a"});
  const auto size = fs::file_size(segment());
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit full = before;
  full.rlim_cur = size + 1000;
  std::unique_ptr<Log> log = must_open();
  setrlimit(RLIMIT_FSIZE, &full);
  const absl::Status status = append_and_wait(*log, {entry("fits"), entry(std::string(5000, 'x'))});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cannot append to " + segment() + ": write: File too large"));
  EXPECT_EQ(fs::file_size(segment()), size);
  ASSERT_TRUE(append_and_wait(*log, {entry("b")}).ok());
  EXPECT_THAT(values(read_log(*log, 0, 2)), ElementsAre("a", "b"));
}

TEST_F(EmbeddedLog, FailedSyncIsUnknownUntilRecovered) {
  std::unique_ptr<Log> log = must_open();
  ASSERT_TRUE(append_and_wait(*log, {entry("a")}).ok());
  auto reader = log->open_reader(0);
  ASSERT_TRUE(reader.ok());
  fail_next_sync = true;
  const absl::Status unknown = append_and_wait(*log, {entry("lost")});
  EXPECT_TRUE(absl::IsUnknown(unknown)) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr(segment() + ": fdatasync: Input/output error"));
  const absl::Status refused = append_and_wait(*log, {entry("refused")});
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(values(read_records(**reader, 1)), ElementsAre("a")) << "what was not synced is not shown";
  ASSERT_TRUE(log->recover().ok());
  ASSERT_TRUE(append_and_wait(*log, {entry("b")}).ok());
  EXPECT_THAT(values(read_records(**reader, 1)), ElementsAre("b"));
  log.reset();
  log = must_open();
  EXPECT_EQ(notice_, "");
  EXPECT_THAT(values(read_log(*log, 0, 2)), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace muster::storage
