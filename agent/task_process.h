// The task's own process. It is made as posix_spawn makes one (it borrows the supervisor's memory until it
// has its own program), since copying the address space of this binary would cost more than a short task
// does.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/cgroup.h"
#include "agent/fd.h"
#include "agent/member_env.h"

namespace muster::agent {

struct TaskCommand {
  std::vector<std::string> words;
  Environment environment;
  std::string directory;
};

struct TaskProcess {
  pid_t pid = -1;      // leads its own session and process group
  Fd output;           // what it and its children write, non-blocking
  std::string failed;  // why it could not run its command; then it has exited
};

// Returns once the command runs or has failed to: then the process has exited with 127 (not found) or 126, as
// a shell would say it.
absl::StatusOr<TaskProcess> start_task(const TaskCommand& command, const TaskCgroup& cgroup);

}  // namespace muster::agent
