// The task's own process: forked with everything prepared that could fail slowly, so that between fork and
// exec there is little left to do.
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
  int exec_errno = 0;  // it could not run its command, and has exited
  std::string exec_what;
};

// Returns once the command runs or has failed to: then exec_errno is set, and the process exits with 127 (not
// found) or 126, as a shell would say it.
absl::StatusOr<TaskProcess> start_task(const TaskCommand& command, const TaskCgroup& cgroup);

}  // namespace muster::agent
