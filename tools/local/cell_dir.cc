#include "tools/local/cell_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::tools {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTailBytes = 16 * 1024;

absl::Status system_error(const std::string& path, int error) {
  return absl::InternalError(absl::StrCat(path, ": ", std::strerror(error)));
}

}  // namespace

std::vector<std::string> CellDir::agents() const {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_ + "/agents", ignored)) {
    if (entry.is_directory(ignored)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status CellDir::create() const {
  std::error_code error;
  fs::create_directories(path_ + "/agents", error);
  if (error) return absl::InternalError(absl::StrCat("--dir ", path_, ": ", error.message()));
  return absl::OkStatus();
}

absl::StatusOr<agent::Fd> CellDir::lock() const {
  agent::Fd fd(open(lock_path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return system_error(lock_path(), errno);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("a `muster local` runs in ", path_, " already, process ", running(),
                     "; stop it with `muster local --stop --dir ", path_, "`"));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd.get(), 0) != 0 ||
      pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return system_error(lock_path(), errno);
  return fd;
}

pid_t CellDir::running() const {
  const agent::Fd fd(open(lock_path().c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return 0;
  char text[32] = {};
  pid_t pid = 0;
  if (pread(fd.get(), text, sizeof text - 1, 0) <= 0 || !absl::SimpleAtoi(text, &pid)) return 0;
  return pid;
}

std::string last_lines(const std::string& path, int lines) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const int64_t size = in.tellg();
  in.seekg(std::max<int64_t>(0, size - kTailBytes));
  std::deque<std::string> last;
  for (std::string line; std::getline(in, line);) {
    last.push_back(line);
    if (static_cast<int>(last.size()) > lines) last.pop_front();
  }
  std::string out;
  for (const std::string& line : last) absl::StrAppend(&out, "  ", line, "\n");
  return out;
}

}  // namespace muster::tools
