// Looking at other processes through /proc, and ending what a task has left behind.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

// Field 22 of /proc/PID/stat (ticks after boot): with the boot id and the pid it names a process for good.
std::optional<uint64_t> process_start_time(pid_t pid);

// The processes whose parent is this one.
std::vector<pid_t> children_of(pid_t parent);

// The processes that were started with all of these environment variables, whoever their parent is now.
std::vector<pid_t> processes_with(const std::map<std::string, std::string>& environment);

// "TERM", "SIGTERM", "USR1" → the number; 0 for an unknown name.
int signal_number(const std::string& name);

}  // namespace muster::agent
