#include "agent/task_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "agent/files.h"

namespace muster::agent {

TaskOutput::TaskOutput(const std::string& path, int64_t bytes_max) : path_(path), bytes_max_(bytes_max) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) bytes_ = status.st_size;  // of earlier runs
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
    append(data);
    return;
  }
  full_ = true;
  data = data.substr(0, static_cast<size_t>(bytes_max_ - bytes_));
  std::string last(data);
  absl::StrAppend(&last, "\nmuster: output is kept up to ", bytes_max_, " bytes; the rest is dropped\n");
  append(last);
}

void TaskOutput::append(std::string_view data) {
  if (!file_) file_.reset(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (file_ && write_all(file_.get(), data)) bytes_ += static_cast<int64_t>(data.size());
}

void TaskOutput::say(const std::string& text) {
  write(absl::StrCat("muster: ", text, "\n"));
}

}  // namespace muster::agent
