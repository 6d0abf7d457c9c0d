#include "storage/embedded_reader.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "storage/embedded_tail.h"

namespace muster::storage {
namespace {

constexpr int kPollMs = 20;  // how often another process's writer is looked at
// One read() returns no more than about this, however many records were asked for.
constexpr size_t kReadBytesMax = size_t{8} << 20;

class EmbeddedReader : public LogReader {
 public:
  EmbeddedReader(std::shared_ptr<EmbeddedShared> log, int64_t position)
      : log_(std::move(log)), next_(position) {}

  absl::StatusOr<std::vector<LogRecord>> read(size_t records_max, int timeout_ms) override {
    absl::Status status = wait(timeout_ms);
    if (!status.ok()) return status;
    const int64_t end = log_->end.get();
    if (next_ > end || next_ < 0) {
      return absl::OutOfRangeError(absl::StrCat("embedded log ", log_->files->directory(),
                                                " ends at position ", end, "; position ", next_,
                                                " was asked for"));
    }
    std::vector<LogRecord> out;
    if (next_ == end || records_max == 0) return out;
    status = read_up_to(end, records_max, &out);
    if (!status.ok() && out.empty()) {
      cursor_.reset();
      return status;
    }
    return out;
  }

  void wake() override { log_->end.wake(&waiter_); }

 private:
  absl::Status wait(int timeout_ms) {
    if (log_->outside == nullptr) {
      log_->end.wait_past(next_, timeout_ms, &waiter_);
      return absl::OkStatus();
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (true) {
      absl::Status status = log_->outside->refresh();
      if (!status.ok() && !absl::IsUnavailable(status)) return status;
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      const int wait_ms = static_cast<int>(std::clamp<int64_t>(left.count(), 0, kPollMs));
      if (log_->end.wait_past(next_, wait_ms, &waiter_) || wait_ms == 0) return status;
    }
  }

  absl::Status read_up_to(int64_t end, size_t records_max, std::vector<LogRecord>* out) {
    if (cursor_ == nullptr) {
      absl::StatusOr<std::unique_ptr<SegmentCursor>> cursor = log_->files->cursor_at(next_);
      if (!cursor.ok()) return cursor.status();
      cursor_ = std::move(*cursor);
    }
    Frame frame;
    size_t bytes = 0;
    out->reserve(std::min<size_t>(records_max, static_cast<size_t>(end - next_)));
    while (next_ < end && out->size() < records_max && bytes < kReadBytesMax) {
      absl::StatusOr<SegmentCursor::Next> next = cursor_->next(&frame);
      if (!next.ok()) return next.status();
      if (*next == SegmentCursor::Next::kBad) return cursor_->damage();
      if (*next == SegmentCursor::Next::kEnd) {
        absl::Status status = next_segment();
        if (!status.ok()) return status;
        continue;
      }
      out->push_back({frame.position, frame.timestamp_ms, std::string(frame.key), std::string(frame.value)});
      bytes += frame.bytes;
      next_ = frame.position + 1;
    }
    log_->files->passed(cursor_->first(), cursor_->place());
    if (next_ == end) cursor_->forget();  // what was read ahead may be half a group
    return absl::OkStatus();
  }

  absl::Status next_segment() {
    absl::StatusOr<std::unique_ptr<SegmentCursor>> cursor =
        SegmentCursor::open(log_->files->directory(), next_);
    if (absl::IsNotFound(cursor.status())) {
      return damage_error(cursor_->path(), cursor_->place().offset, next_, "it ends before its last record");
    }
    if (!cursor.ok()) return cursor.status();
    if ((*cursor)->place().chain != cursor_->place().chain) {
      return damage_error((*cursor)->path(), 0, next_,
                          "it does not continue the chain of the segment before it");
    }
    cursor_ = std::move(*cursor);
    return absl::OkStatus();
  }

  const std::shared_ptr<EmbeddedShared> log_;
  int64_t next_;
  DurableEnd::Waiter waiter_;
  std::unique_ptr<SegmentCursor> cursor_;  // at next_; null: to be found
};

}  // namespace

absl::Status OutsideEnd::refresh() {
  std::lock_guard lock(mutex_);
  if (!writer_) {
    absl::StatusOr<WriterFile> writer = WriterFile::watch(directory_);
    if (writer.ok()) writer_.emplace(std::move(*writer));
    if (!writer.ok() && !absl::IsNotFound(writer.status())) return writer.status();
  }
  absl::StatusOr<WriterFile::Published> published = WriterFile::Published{};
  if (writer_) published = writer_->published();
  if (!published.ok()) return published.status();
  if (!published->lives) return read_files_ ? absl::OkStatus() : read_files();
  read_files_ = false;
  if (published->durable_end >= 0) {
    end_->advance(published->durable_end);
    known_ = true;
  }
  return known_ ? absl::OkStatus()
                : absl::UnavailableError(
                      absl::StrCat("the writer of embedded log ", directory_, " is starting"));
}

absl::Status OutsideEnd::read_files() {
  absl::StatusOr<Tail> tail = find_tail(directory_);
  if (!tail.ok()) return tail.status();
  if (!tail->empty) {
    absl::StatusOr<File> last = File::open(segment_path(directory_, tail->segment), O_RDONLY);
    if (!last.ok()) return last.status();
    absl::Status status = last->sync();
    if (!status.ok()) return status;
  }
  if (writer_) {  // one that came meanwhile knows better
    absl::StatusOr<WriterFile::Published> published = writer_->published();
    if (!published.ok()) return published.status();
    if (published->lives) return absl::UnavailableError("the log's writer is starting");
  }
  end_->advance(tail->end.position);
  read_files_ = known_ = true;
  return absl::OkStatus();
}

std::unique_ptr<LogReader> make_embedded_reader(std::shared_ptr<EmbeddedShared> log, int64_t position) {
  return std::make_unique<EmbeddedReader>(std::move(log), position);
}

}  // namespace muster::storage
