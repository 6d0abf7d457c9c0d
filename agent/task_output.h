// output.log: what a task writes, copied by its supervisor from a pipe. It grows to a limit; what comes after
// is drained (the task never blocks on it) and dropped, and the file says so once.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "agent/fd.h"

namespace muster::agent {

class TaskOutput {
 public:
  TaskOutput(const std::string& path, int64_t bytes_max);

  // Copies what the pipe holds now. False: every writer has closed it.
  bool copy(int pipe);
  // A line of Muster's own.
  void say(const std::string& text);
  int64_t bytes() const { return bytes_; }

 private:
  void write(std::string_view data);
  void append(std::string_view data);

  const std::string path_;
  Fd file_;  // made when there is something to write
  const int64_t bytes_max_;
  int64_t bytes_ = 0;
  bool full_ = false;
};

}  // namespace muster::agent
