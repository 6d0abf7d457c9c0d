// A file descriptor that closes itself, and the few calls on it that report what failed as a Status.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::storage {

// "WHAT: strerror (errno)". A full disk is kUnavailable, a missing file kNotFound, anything else kInternal.
absl::Status errno_status(std::string_view what, int error);

class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  // open(2) with O_CLOEXEC; new files get mode 0640.
  static absl::StatusOr<File> open(const std::string& path, int flags);

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  absl::StatusOr<int64_t> size() const;
  // Reads up to `bytes`, less only at the end of the file.
  absl::StatusOr<size_t> read_at(int64_t offset, char* out, size_t bytes) const;
  absl::Status write_at(int64_t offset, std::string_view bytes) const;
  absl::Status truncate(int64_t bytes) const;
  absl::Status sync() const;  // fdatasync

 private:
  int fd_ = -1;
};

absl::Status sync_directory(const std::string& directory);

}  // namespace muster::storage
