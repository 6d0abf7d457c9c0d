#include "storage/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::storage {

absl::Status errno_status(std::string_view what, int error) {
  std::string message = absl::StrCat(std::string(what), ": ", strerror(error), " (errno ", error, ")");
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

File::File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

absl::StatusOr<File> File::open(const std::string& path, int flags) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0640);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return errno_status("cannot open " + path, errno);
  return File(fd);
}

absl::StatusOr<int64_t> File::size() const {
  struct stat info {};
  if (fstat(fd_, &info) != 0) return errno_status("fstat", errno);
  return static_cast<int64_t>(info.st_size);
}

absl::StatusOr<size_t> File::read_at(int64_t offset, char* out, size_t bytes) const {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t count = ::pread(fd_, out + done, bytes - done, offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_status("read", errno);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

absl::Status File::write_at(int64_t offset, std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_status("write", errno);
    bytes.remove_prefix(static_cast<size_t>(count));
    offset += count;
  }
  return absl::OkStatus();
}

absl::Status File::truncate(int64_t bytes) const {
  int result;
  do {
    result = ::ftruncate(fd_, bytes);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? absl::OkStatus() : errno_status("truncate", errno);
}

absl::Status File::sync() const {
  return ::fdatasync(fd_) == 0 ? absl::OkStatus() : errno_status("fdatasync", errno);
}

absl::Status sync_directory(const std::string& directory) {
  absl::StatusOr<File> opened = File::open(directory, O_RDONLY | O_DIRECTORY);
  if (!opened.ok()) return opened.status();
  return ::fsync(opened->fd()) == 0 ? absl::OkStatus() : errno_status("fsync " + directory, errno);
}

}  // namespace muster::storage
