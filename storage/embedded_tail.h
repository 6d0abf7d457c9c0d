// The end of an embedded log, found when it is opened: the last segment is read whole, and what a crash left
// of an unfinished group is told from damage.
//
// A group is written at once and synced before anyone is told, so only the last one can be torn; each frame
// says how far the log was synced when it was written. A broken frame with a later one that was written after
// its sync is damage.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/segment.h"

namespace muster::storage {

struct Tail {
  bool empty = true;               // no segment: the next record starts one
  int64_t log_first = 0;           // the oldest position
  int64_t segment = 0;             // the last segment's first position
  FramePlace end;                  // where the next record goes in it
  int64_t torn_bytes = 0;          // after `end`: what is left of an unfinished group
  std::string torn_file;           // a segment that never got its header, to be removed
  std::vector<FramePlace> places;  // some places in the last segment, to seek from
};

// kDataLoss: damage, with file and offset. Changes nothing.
absl::StatusOr<Tail> find_tail(const std::string& directory);

}  // namespace muster::storage
