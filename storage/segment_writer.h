// Writes an embedded log: each commit is one write and one fdatasync at the end of the last segment. One
// thread at a time. See embedded_log.h for what its failures mean.
#pragma once

#include <memory>
#include <string>

#include "storage/append_queue.h"
#include "storage/embedded_tail.h"
#include "storage/segment_files.h"

namespace muster::storage {

class SegmentWriter {
 public:
  // Goes on from the tail: cuts what is torn, and syncs what is kept.
  static absl::StatusOr<std::unique_ptr<SegmentWriter>> open(std::shared_ptr<SegmentFiles> files,
                                                             const Tail& tail);

  absl::Status commit(const AppendQueue::Groups& groups);
  // After kUnknown: opens the segment anew, cut back to what was last known to be durable, and reads it.
  absl::Status repair();

  int64_t end() const { return end_.position; }

 private:
  SegmentWriter(std::shared_ptr<SegmentFiles> files, const Tail& tail);
  absl::Status start_segment(int64_t first);
  absl::Status create_segment(const std::string& path, int64_t first);
  FramePlace encode(const AppendQueue::Groups& groups);
  absl::Status cut_back(const absl::Status& failure);

  const std::shared_ptr<SegmentFiles> files_;
  bool empty_;          // no segment yet
  int64_t segment_;     // the last one's first position
  FramePlace end_;      // of what is durable
  File file_;           // the last segment
  std::string frames_;  // of one commit; kept for its memory
};

}  // namespace muster::storage
