#include "agent/task_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "agent/files.h"

namespace muster::agent {

TaskOutput::TaskOutput(const std::string& path, int64_t bytes_max)
    : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)), bytes_max_(bytes_max) {
  struct stat status {};
  if (file_ && fstat(file_.get(), &status) == 0) bytes_ = status.st_size;
  full_ = bytes_ >= bytes_max_;
}

bool TaskOutput::copy(int pipe) {
  char buffer[65536];
  for (int round = 0; round < 16; ++round) {  // then the caller looks at its other work
    const ssize_t n = read(pipe, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    write({buffer, static_cast<size_t>(n)});
  }
  return true;
}

void TaskOutput::write(std::string_view data) {
  if (full_) return;
  if (bytes_ + static_cast<int64_t>(data.size()) <= bytes_max_) {
    // A full disk loses output, never the task.
    if (write_all(file_.get(), data)) bytes_ += static_cast<int64_t>(data.size());
    return;
  }
  full_ = true;
  data = data.substr(0, static_cast<size_t>(bytes_max_ - bytes_));
  std::string last(data);
  absl::StrAppend(&last, "\nmuster: output is kept up to ", bytes_max_, " bytes; the rest is dropped\n");
  if (write_all(file_.get(), last)) bytes_ += static_cast<int64_t>(last.size());
}

void TaskOutput::say(const std::string& text) {
  write(absl::StrCat("muster: ", text, "\n"));
}

}  // namespace muster::agent
