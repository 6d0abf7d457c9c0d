#include "storage/segment_files.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::storage {

absl::StatusOr<std::unique_ptr<SegmentCursor>> SegmentFiles::cursor_at(int64_t position) {
  absl::StatusOr<std::vector<int64_t>> segments = list_segments(directory_);
  if (!segments.ok()) return segments.status();
  auto after = std::upper_bound(segments->begin(), segments->end(), position);
  if (after == segments->begin()) {
    return absl::OutOfRangeError(
        absl::StrCat("embedded log ", directory_, " has no segment with position ", position));
  }
  const int64_t segment = *--after;
  absl::StatusOr<std::unique_ptr<SegmentCursor>> cursor = SegmentCursor::open(directory_, segment);
  if (!cursor.ok()) return cursor.status();
  {
    std::lock_guard lock(mutex_);
    FramePlace place;
    if (indexes_[segment].find(position, &place)) (*cursor)->jump(place);
  }
  Frame frame;
  while ((*cursor)->place().position < position) {
    absl::StatusOr<SegmentCursor::Next> next = (*cursor)->next(&frame);
    if (!next.ok()) return next.status();
    if (*next == SegmentCursor::Next::kEnd) {
      return damage_error((*cursor)->path(), (*cursor)->place().offset, (*cursor)->place().position,
                          "it ends before its last record");
    }
    if (*next == SegmentCursor::Next::kBad) return (*cursor)->damage();
    passed(segment, (*cursor)->place());
  }
  return cursor;
}

void SegmentFiles::passed(int64_t segment, const FramePlace& place) {
  std::lock_guard lock(mutex_);
  indexes_[segment].add(place);
}

}  // namespace muster::storage
