// Which record is being folded, in a file that outlives the process: a record on which the fold dies a second
// time is found at the next start, and the server stays up, read-only, before it.
//
// The file is mapped, so that a mark costs two stores; it needs no sync, because only the death of the
// process counts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace muster::server {

class FoldMarker {
 public:
  // Opens or creates DIR/folding and notes whether the last process died within a fold.
  static absl::StatusOr<std::unique_ptr<FoldMarker>> open(const std::string& directory);
  ~FoldMarker();
  FoldMarker(const FoldMarker&) = delete;
  FoldMarker& operator=(const FoldMarker&) = delete;

  void begin(int64_t position);
  void end();
  // The fold of this record failed without the process' death (an exception).
  void note_failure(int64_t position);
  // The position that must not be folded again: two attempts have died on it. -1: none.
  int64_t poisoned() const;

 private:
  struct Mapped;
  explicit FoldMarker(Mapped* mapped) : mapped_(mapped) {}
  Mapped* mapped_;
};

}  // namespace muster::server
