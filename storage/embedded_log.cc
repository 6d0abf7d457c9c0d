#include "storage/embedded_log.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "storage/append_queue.h"
#include "storage/embedded_reader.h"
#include "storage/embedded_tail.h"
#include "storage/segment_writer.h"
#include "storage/writer_file.h"

namespace muster::storage {
namespace {

std::string torn_notice(const std::string& directory, const Tail& tail) {
  std::string out;
  if (!tail.torn_file.empty()) {
    out = absl::StrCat("embedded log: removed ", tail.torn_file,
                       ", a segment that a crash left without a record");
  }
  if (tail.torn_bytes > 0) {
    out = absl::StrCat(
        "embedded log: cut ", tail.torn_bytes, " bytes of a group that a crash left unfinished from ",
        segment_path(directory, tail.segment), " at offset ", tail.end.offset, "; the last position is ",
        tail.end.position - 1, ". Nothing that was acknowledged is lost");
  }
  return out;
}

// The oldest position: that of the first segment, or the end of an empty log.
absl::StatusOr<int64_t> first_position(EmbeddedShared& shared) {
  absl::StatusOr<std::vector<int64_t>> segments = list_segments(shared.files->directory());
  if (!segments.ok()) return segments.status();
  const int64_t end = shared.end.get();
  return segments->empty() || segments->front() > end ? end : segments->front();
}

class EmbeddedLog : public Log {
 public:
  EmbeddedLog(std::shared_ptr<EmbeddedShared> shared, std::unique_ptr<SegmentWriter> writer, WriterFile lock)
      : shared_(std::move(shared)),
        writer_(std::move(writer)),
        lock_(std::move(lock)),
        queue_([this](const AppendQueue::Groups& groups) { return commit(groups); }) {
    advance();
  }

  void append(std::vector<LogEntry> group, Done done) override {
    queue_.append(std::move(group), std::move(done));
  }
  absl::Status recover() override {
    return queue_.recover([this] { return writer_->repair(); });
  }
  absl::StatusOr<std::unique_ptr<LogReader>> open_reader(int64_t position) override {
    return make_embedded_reader(shared_, position);
  }
  absl::StatusOr<int64_t> end() override { return shared_->end.get(); }
  absl::StatusOr<int64_t> first() override { return first_position(*shared_); }
  bool exclusive() const override { return true; }

 private:
  absl::Status commit(const AppendQueue::Groups& groups) {
    absl::Status status = writer_->commit(groups);
    if (status.ok()) advance();
    return status;
  }

  void advance() {
    shared_->end.advance(writer_->end());
    lock_.publish(writer_->end());
  }

  const std::shared_ptr<EmbeddedShared> shared_;
  const std::unique_ptr<SegmentWriter> writer_;
  const WriterFile lock_;
  AppendQueue queue_;  // last: its thread uses the above
};

class ReadOnlyEmbeddedLog : public Log {
 public:
  explicit ReadOnlyEmbeddedLog(std::shared_ptr<EmbeddedShared> shared)
      : shared_(std::move(shared)), refuse_([](const AppendQueue::Groups&) {
          return absl::UnavailableError("the embedded log is open for reading only");
        }) {}

  void append(std::vector<LogEntry> group, Done done) override {
    refuse_.append(std::move(group), std::move(done));
  }
  absl::Status recover() override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<LogReader>> open_reader(int64_t position) override {
    return make_embedded_reader(shared_, position);
  }
  absl::StatusOr<int64_t> end() override {
    absl::Status status = shared_->outside->refresh();
    if (!status.ok()) return status;
    return shared_->end.get();
  }
  absl::StatusOr<int64_t> first() override {
    absl::Status status = shared_->outside->refresh();
    if (!status.ok()) return status;
    return first_position(*shared_);
  }
  bool exclusive() const override { return false; }

 private:
  const std::shared_ptr<EmbeddedShared> shared_;
  AppendQueue refuse_;
};

absl::StatusOr<std::unique_ptr<Log>> open_to_read(const std::string& directory) {
  if (!std::filesystem::is_directory(directory)) {
    return absl::NotFoundError(absl::StrCat("there is no embedded log at ", directory));
  }
  auto shared = std::make_shared<EmbeddedShared>(directory);
  shared->outside = std::make_unique<OutsideEnd>(directory, &shared->end);
  absl::Status status = shared->outside->refresh();
  if (!status.ok() && !absl::IsUnavailable(status)) return status;
  return std::make_unique<ReadOnlyEmbeddedLog>(std::move(shared));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Log>> open_embedded_log(const std::string& directory, LogMode mode,
                                                       std::string* notice) {
  if (mode == LogMode::kReadOnly) return open_to_read(directory);
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return errno_status(absl::StrCat("cannot make the embedded log's directory ", directory), error.value());
  absl::StatusOr<WriterFile> lock = WriterFile::lock(directory);
  if (!lock.ok()) return lock.status();
  absl::StatusOr<Tail> tail = find_tail(directory);
  if (!tail.ok()) return tail.status();
  auto shared = std::make_shared<EmbeddedShared>(directory);
  absl::StatusOr<std::unique_ptr<SegmentWriter>> writer = SegmentWriter::open(shared->files, *tail);
  if (!writer.ok()) return writer.status();
  std::string torn = torn_notice(directory, *tail);
  if (!torn.empty()) *notice = std::move(torn);
  return std::make_unique<EmbeddedLog>(std::move(shared), std::move(*writer), std::move(*lock));
}

}  // namespace muster::storage
