// Segment files: DIR/<first position, 20 digits>.log, a header of 64 bytes and frames (frame.h) one after
// another. A segment is sealed, and wholly synced, before the next one is made, which starts at the position
// after its last record.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/chain.h"
#include "storage/file.h"
#include "storage/frame.h"

namespace muster::storage {

inline constexpr int64_t kSegmentHeaderBytes = 64;
inline constexpr int64_t kSegmentBytes = int64_t{64}
                                         << 20;  // a full segment is left when it has reached this

std::string segment_path(const std::string& directory, int64_t first);
// The first positions of the directory's segments, ascending.
absl::StatusOr<std::vector<int64_t>> list_segments(const std::string& directory);

// `before` is the chain before the segment's first record.
std::string segment_header(int64_t first, const Chain& before);

// Where a frame starts, and the chain before it.
struct FramePlace {
  int64_t position = 0;
  int64_t offset = kSegmentHeaderBytes;
  Chain chain;
};

// Reads the frames of one segment in order and checks each: checksum, position, chain. One thread.
class SegmentCursor {
 public:
  // kDataLoss: the header is not that of this segment. kNotFound: no such file.
  static absl::StatusOr<std::unique_ptr<SegmentCursor>> open(const std::string& directory, int64_t first);

  enum class Next {
    kFrame,
    kEnd,  // the file ends here, after a whole frame
    kBad,  // no whole frame that follows on; why() says what is there instead
  };
  // The frame's views last until the following call.
  absl::StatusOr<Next> next(Frame* frame);

  int64_t first() const { return first_; }            // the segment's first position
  const FramePlace& place() const { return place_; }  // of the next frame
  const std::string& path() const { return path_; }
  const std::string& why() const { return why_; }
  void jump(const FramePlace& place);
  // Forgets what was read ahead: the writer may have written over it since.
  void forget() { begin_ = end_ = 0; }
  // kDataLoss about place() and why(): file, offset, and the last good position.
  absl::Status damage() const;

 private:
  SegmentCursor(std::string path, int64_t first, File file);
  absl::StatusOr<bool> fill();  // false: there is no more in the file

  const std::string path_;
  const int64_t first_;
  const File file_;
  FramePlace place_;
  std::string why_;
  std::vector<char> buffer_;
  bool was_full_ = false;       // the last fill() filled it: a larger one pays
  size_t begin_ = 0, end_ = 0;  // what of buffer_ is still to be decoded; begin_ is at place_.offset
};

absl::Status damage_error(const std::string& path, int64_t offset, int64_t expected_position,
                          const std::string& why);

}  // namespace muster::storage
