#include "agent/files.h"

#include <fcntl.h>
#include <isa-l/crc.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "agent/fd.h"

namespace muster::agent {

absl::Status system_error(std::string_view what, std::string_view path, int error) {
  const std::string text = absl::StrCat(std::string(what), " ", std::string(path), ": ", strerror(error));
  if (error == ENOENT) return absl::NotFoundError(text);
  if (error == EEXIST) return absl::AlreadyExistsError(text);
  return absl::UnavailableError(text);
}

absl::StatusOr<std::string> read_file(const std::string& path, size_t max_bytes) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return system_error("cannot read", path, errno);
  std::string out;
  char buffer[16384];
  for (;;) {
    const ssize_t n = read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("cannot read", path, errno);
    if (n == 0) return out;
    out.append(buffer, static_cast<size_t>(n));
    if (out.size() > max_bytes)
      return absl::OutOfRangeError(absl::StrCat(path, " is longer than ", max_bytes, " bytes"));
  }
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

absl::Status write_atomic(const std::string& path, std::string_view bytes) {
  const std::string beside = path + ".new";
  Fd fd(open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return system_error("cannot create", beside, errno);
  if (!write_all(fd.get(), bytes)) return system_error("cannot write", beside, errno);
  if (rename(beside.c_str(), path.c_str()) != 0) return system_error("cannot rename to", path, errno);
  return absl::OkStatus();
}

absl::Status create_file(const std::string& path, std::string_view bytes) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) return system_error("cannot create", path, errno);
  if (!write_all(fd.get(), bytes)) return system_error("cannot write", path, errno);
  return absl::OkStatus();
}

absl::Status write_control(const std::string& path, std::string_view text) {
  Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return system_error("cannot open", path, errno);
  const ssize_t n = write(fd.get(), text.data(), text.size());
  if (n != static_cast<ssize_t>(text.size())) return system_error("cannot write", path, errno);
  return absl::OkStatus();
}

absl::Status sync_path(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return system_error("cannot open", path, errno);
  if (fsync(fd.get()) != 0) return system_error("cannot sync", path, errno);
  return absl::OkStatus();
}

absl::Status make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return system_error("cannot create directory", path, error.value());
  return absl::OkStatus();
}

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

uint32_t crc32c(std::string_view bytes) {
  auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  return ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~0U);
}

std::string boot_id() {
  std::string text = read_file("/proc/sys/kernel/random/boot_id").value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

int64_t boottime_ms() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * int64_t{1000} + now.tv_nsec / 1'000'000;
}

uint64_t random_nonzero() {
  uint64_t value = 0;
  while (value == 0) {
    if (getrandom(&value, sizeof value, 0) != sizeof value) abort();  // cannot fail for so few bytes
  }
  return value;
}

}  // namespace muster::agent
