// Limits by control groups, where the host lets us write them: v1 (one tree a controller) or v2 (one tree).
// The agent finds out once, below its own groups; each supervisor makes its task's, `muster/NODE/TASK`, and
// removes them. A limit that cannot be set is never dropped silently: what is absent is in `notes`, and so in
// the node's description.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/fd.h"

namespace muster::agent {

// The node's group in each tree; empty: that limit is not to be had.
struct CgroupTrees {
  std::string memory;
  std::string cpu;
  std::string pids;
  bool v2 = false;  // then all three are the same directory

  std::vector<std::string> distinct() const;
};

// `mounts` and `own` are the texts of /proc/self/mounts and /proc/self/cgroup. Makes the node's groups.
CgroupTrees find_cgroups(const std::string& mounts, const std::string& own, const std::string& node,
                         std::vector<std::string>* notes);

// Removes the node's groups, unless tasks live in them.
void remove_cgroups(const CgroupTrees& trees);

// The memory limit of the agent's own group; 0: none found.
int64_t own_memory_limit(const std::string& mounts, const std::string& own);

struct CgroupLimits {
  int64_t cpu_milli = 0;     // 0: no limit
  int64_t memory_bytes = 0;  // 0: no limit
  int64_t pids = 0;          // 0: no limit
};

// One task's groups. Not copied: whoever made them removes them.
class TaskCgroup {
 public:
  TaskCgroup(const CgroupTrees& trees, const std::string& task, const CgroupLimits& limits);

  absl::Status create();
  // The files that a process enters by writing "0" to each.
  absl::StatusOr<std::vector<Fd>> open_to_enter() const;
  int64_t oom_kills() const;  // processes that the kernel killed for memory
  std::vector<pid_t> processes() const;
  void kill_all() const;
  void remove() const;  // once empty

 private:
  std::vector<std::string> paths() const;

  CgroupTrees task_;  // the task's own directories; only those that it needs
  CgroupLimits limits_;
};

}  // namespace muster::agent
