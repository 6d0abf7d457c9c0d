// The segments of an embedded log as its readers see them: where each position is. Shared by the log and its
// readers. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/segment.h"
#include "storage/sparse_index.h"

namespace muster::storage {

class SegmentFiles {
 public:
  explicit SegmentFiles(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }
  // A cursor whose next frame is that of the position, which must be durable.
  absl::StatusOr<std::unique_ptr<SegmentCursor>> cursor_at(int64_t position);
  // A place that was passed in the segment, to find it again sooner.
  void passed(int64_t segment, const FramePlace& place);

 private:
  const std::string directory_;
  std::mutex mutex_;
  std::map<int64_t, SparseIndex> indexes_;  // by the segment's first position
};

}  // namespace muster::storage
