#include "storage/embedded_tail.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "storage/sparse_index.h"

namespace muster::storage {
namespace {

// Whether a frame lies after `bad.offset` that was written when bad.position had been synced. A crash may
// leave any pages of the last write, so that whole frames of the same group may follow a broken one.
absl::StatusOr<bool> synced_before_later_frame(const File& file, const FramePlace& bad) {
  constexpr size_t kStep = size_t{1} << 20;
  std::vector<char> window(kStep + kFrameBytesMax);
  absl::StatusOr<int64_t> size = file.size();
  if (!size.ok()) return size.status();
  const int64_t position_max = bad.position + (*size - bad.offset) / static_cast<int64_t>(kFrameHeaderBytes);
  for (int64_t offset = bad.offset; offset < *size; offset += kStep) {
    absl::StatusOr<size_t> count = file.read_at(offset, window.data(), window.size());
    if (!count.ok()) return count.status();
    for (size_t at = 0; at < kStep && at + kFrameHeaderBytes <= *count; ++at) {
      int64_t position;
      std::memcpy(&position, window.data() + at + 8, sizeof position);
      if (position <= bad.position || position > position_max) continue;
      Frame frame;
      if (decode_frame({window.data() + at, *count - at}, &frame) == FrameState::kWhole &&
          frame.durable > bad.position)
        return true;
    }
  }
  return false;
}

// A segment's header is synced before its first record is written, so a file without one holds nothing.
absl::StatusOr<bool> never_got_header(const std::string& path) {
  absl::StatusOr<File> file = File::open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  char bytes[kSegmentHeaderBytes + 1];
  absl::StatusOr<size_t> count = file->read_at(0, bytes, sizeof bytes);
  if (!count.ok()) return count.status();
  if (*count > kSegmentHeaderBytes) return false;
  return *count < kSegmentHeaderBytes ||
         std::all_of(bytes, bytes + *count, [](char byte) { return byte == 0; });
}

absl::Status read_last_segment(const std::string& directory, bool sealed, Tail* tail) {
  absl::StatusOr<std::unique_ptr<SegmentCursor>> cursor = SegmentCursor::open(directory, tail->segment);
  if (!cursor.ok()) return cursor.status();
  SparseIndex index;
  Frame frame;
  absl::StatusOr<SegmentCursor::Next> next = SegmentCursor::Next::kEnd;
  while ((next = (*cursor)->next(&frame)).ok() && *next == SegmentCursor::Next::kFrame)
    index.add((*cursor)->place());
  if (!next.ok()) return next.status();
  tail->end = (*cursor)->place();
  tail->places = index.places();
  if (*next == SegmentCursor::Next::kEnd) return absl::OkStatus();
  absl::StatusOr<File> file = File::open((*cursor)->path(), O_RDONLY);
  if (!file.ok()) return file.status();
  absl::StatusOr<bool> damaged = synced_before_later_frame(*file, tail->end);
  if (!damaged.ok()) return damaged.status();
  if (*damaged || sealed) return (*cursor)->damage();
  absl::StatusOr<int64_t> size = file->size();
  if (!size.ok()) return size.status();
  tail->torn_bytes = *size - tail->end.offset;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tail> find_tail(const std::string& directory) {
  absl::StatusOr<std::vector<int64_t>> segments = list_segments(directory);
  if (!segments.ok()) return segments.status();
  Tail tail;
  bool sealed = false;
  if (!segments->empty()) {
    const std::string last = segment_path(directory, segments->back());
    absl::StatusOr<bool> torn = never_got_header(last);
    if (!torn.ok()) return torn.status();
    if (*torn) {
      tail.torn_file = last;
      sealed = true;
      segments->pop_back();
    }
  }
  if (segments->empty()) return tail;
  tail.empty = false;
  tail.log_first = segments->front();
  tail.segment = segments->back();
  absl::Status status = read_last_segment(directory, sealed, &tail);
  if (!status.ok()) return status;
  return tail;
}

}  // namespace muster::storage
