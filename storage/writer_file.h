// DIR/writer: names and locks the one writer of an embedded log, and says beside it, to readers in other
// processes, how far the log is durable. The lock ends with the process, however it ends.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/file.h"

namespace muster::storage {

class WriterFile {
 public:
  // As the writer. kFailedPrecondition: another one lives.
  static absl::StatusOr<WriterFile> lock(const std::string& directory);
  // As a reader. kNotFound: no writer has ever been here.
  static absl::StatusOr<WriterFile> watch(const std::string& directory);

  // The writer's, after each sync. A failure only delays readers in other processes.
  void publish(int64_t durable_end) const;
  struct Published {
    bool lives = false;
    int64_t durable_end = -1;  // -1: the writer is still reading its log
  };
  // A reader's: the writer, if one lives, and how far it has got.
  absl::StatusOr<Published> published() const;

 private:
  explicit WriterFile(File file) : file_(std::move(file)) {}
  absl::StatusOr<bool> writer_lives() const;

  File file_;
};

}  // namespace muster::storage
