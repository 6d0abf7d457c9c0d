// Where some frames of a segment start, one in every 256 KB, so that a reader starts anywhere without reading
// the segment from its beginning. Grows as frames are passed, 0.01 % of the log's size. One thread, or locked
// by its owner.
#pragma once

#include <algorithm>
#include <vector>

#include "storage/segment.h"

namespace muster::storage {

class SparseIndex {
 public:
  // Takes the place if it is far enough past the last one.
  void add(const FramePlace& place) {
    const int64_t last = places_.empty() ? kSegmentHeaderBytes : places_.back().offset;
    if (place.offset >= last + kSpacingBytes) places_.push_back(place);
  }

  // The last place at or before the position; false: only the segment's beginning is.
  bool find(int64_t position, FramePlace* out) const {
    auto after = std::upper_bound(places_.begin(), places_.end(), position,
                                  [](int64_t p, const FramePlace& place) { return p < place.position; });
    if (after == places_.begin()) return false;
    *out = *--after;
    return true;
  }

  const std::vector<FramePlace>& places() const { return places_; }

 private:
  static constexpr int64_t kSpacingBytes = 256 << 10;
  std::vector<FramePlace> places_;
};

}  // namespace muster::storage
