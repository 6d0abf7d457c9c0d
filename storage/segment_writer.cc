#include "storage/segment_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "storage/boot_clock.h"
#include "storage/opened_base.h"

namespace muster::storage {
namespace {

absl::Status with_prefix(absl::StatusCode code, const std::string& prefix, const absl::Status& status) {
  return absl::Status(code, absl::StrCat(prefix, ": ", status.message()));
}

}  // namespace

SegmentWriter::SegmentWriter(std::shared_ptr<SegmentFiles> files, const Tail& tail)
    : files_(std::move(files)), empty_(tail.empty), segment_(tail.segment), end_(tail.end) {}

absl::StatusOr<std::unique_ptr<SegmentWriter>> SegmentWriter::open(std::shared_ptr<SegmentFiles> files,
                                                                   const Tail& tail) {
  std::unique_ptr<SegmentWriter> writer(new SegmentWriter(std::move(files), tail));
  const std::string& directory = writer->files_->directory();
  if (!tail.torn_file.empty()) {
    if (::unlink(tail.torn_file.c_str()) != 0) return errno_status("cannot remove " + tail.torn_file, errno);
    absl::Status status = sync_directory(directory);
    if (!status.ok()) return status;
  }
  if (tail.empty) return writer;
  for (const FramePlace& place : tail.places) writer->files_->passed(tail.segment, place);
  absl::StatusOr<File> file = File::open(segment_path(directory, tail.segment), O_RDWR);
  if (!file.ok()) return file.status();
  writer->file_ = std::move(*file);
  if (tail.torn_bytes > 0) {
    absl::Status status = writer->file_.truncate(tail.end.offset);
    if (!status.ok()) return with_prefix(status.code(), "cannot cut the torn tail of the log", status);
  }
  absl::Status status = writer->file_.sync();  // a crashed writer's last group may lie in memory only
  if (!status.ok()) return with_prefix(status.code(), "cannot sync the log", status);
  return writer;
}

absl::Status SegmentWriter::create_segment(const std::string& path, int64_t first) {
  absl::StatusOr<File> file = File::open(path, O_RDWR | O_CREAT | O_EXCL);
  if (!file.ok()) return file.status();
  absl::Status status = file->write_at(0, segment_header(first, end_.chain));
  if (status.ok()) status = file->sync();
  if (status.ok()) status = sync_directory(files_->directory());
  if (!status.ok()) {
    ::unlink(path.c_str());
    return status;
  }
  file_ = std::move(*file);
  return absl::OkStatus();
}

absl::Status SegmentWriter::start_segment(int64_t first) {
  const std::string path = segment_path(files_->directory(), first);
  absl::Status status = create_segment(path, first);
  if (!status.ok()) return with_prefix(absl::StatusCode::kUnavailable, "cannot make " + path, status);
  empty_ = false;
  segment_ = first;
  end_ = {first, kSegmentHeaderBytes, end_.chain};
  return absl::OkStatus();
}

FramePlace SegmentWriter::encode(const AppendQueue::Groups& groups) {
  FramePlace place = end_;
  frames_.clear();
  const int64_t now_ms = boottime_ms();
  for (const auto& group : groups) {
    for (const LogEntry& entry : group) {
      place.chain = chain_next(place.chain, place.position, entry.key, entry.value);
      append_frame(&frames_, place.position, place.chain, now_ms, end_.position, entry);
      ++place.position;
    }
  }
  place.offset += static_cast<int64_t>(frames_.size());
  return place;
}

absl::Status SegmentWriter::commit(const AppendQueue::Groups& groups) {
  const LogEntry* first = nullptr;
  for (const auto& group : groups) {
    if (!group.empty() && first == nullptr) first = &group.front();
  }
  if (first == nullptr) return absl::OkStatus();
  if (empty_ || end_.offset >= kSegmentBytes) {
    absl::Status status = start_segment(empty_ ? opened_base(first->value) : end_.position);
    if (!status.ok()) return status;
  }
  const FramePlace after = encode(groups);
  absl::Status status = file_.write_at(end_.offset, frames_);
  if (!status.ok()) return cut_back(status);
  status = file_.sync();
  if (!status.ok()) {
    return with_prefix(absl::StatusCode::kUnknown, segment_path(files_->directory(), segment_), status);
  }
  end_ = after;
  files_->passed(segment_, end_);
  return absl::OkStatus();
}

absl::Status SegmentWriter::cut_back(const absl::Status& failure) {
  const std::string path = segment_path(files_->directory(), segment_);
  absl::Status status = file_.truncate(end_.offset);
  if (status.ok()) status = file_.sync();  // or a crash may bring the file's longer size back
  if (status.ok()) {
    return with_prefix(absl::StatusCode::kUnavailable, absl::StrCat("cannot append to ", path), failure);
  }
  return absl::UnknownError(absl::StrCat("cannot append to ", path, ": ", failure.message(),
                                         "; and cutting it back failed: ", status.message()));
}

absl::Status SegmentWriter::repair() {
  if (empty_) return absl::OkStatus();
  const std::string path = segment_path(files_->directory(), segment_);
  absl::StatusOr<File> file = File::open(path, O_RDWR);
  if (!file.ok()) return file.status();
  // Cutting inside a page writes it, with the durable records that share it, anew.
  absl::Status status = file->truncate(end_.offset);
  if (status.ok()) status = file->sync();
  if (!status.ok()) return with_prefix(absl::StatusCode::kUnavailable, "cannot recover " + path, status);
  absl::StatusOr<Tail> tail = find_tail(files_->directory());
  if (!tail.ok()) return tail.status();
  if (tail->end.position != end_.position || tail->end.chain != end_.chain) {
    return damage_error(path, tail->end.offset, tail->end.position,
                        absl::StrCat("positions up to ", end_.position - 1, " were durable"));
  }
  file_ = std::move(*file);
  return absl::OkStatus();
}

}  // namespace muster::storage
