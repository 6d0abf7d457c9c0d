// The node agent: takes orders for this machine's members from any server of its cell, starts each under a
// supervisor that outlives it, and reports what became of them until the log has it.
//
// One thread does the work (members.h); the session has two of its own (session.h). All that must outlive the
// agent is in its directory: `node` (who it is), `reports`, `tasks/`, `done/`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/fd.h"
#include "agent/spawner.h"

namespace muster::agent {

struct AgentOptions {
  std::vector<std::string> servers;  // HOST:PORT; any of the cell's
  std::string dir;
  std::string name;  // empty: the directory's, else the host's name
  std::string
      address;  // by which members reach each other; empty: the one that the first server is reached from
  int64_t cpu_milli = 0;     // 0: what the machine has
  int64_t memory_bytes = 0;  // 0: what the machine has
  int32_t gpus = -1;         // declared; -1: those that NVML finds
  std::string gpu_model;     // of declared ones
  std::map<std::string, std::string> labels;
  uint32_t port_first = 20'000;
  uint32_t port_last = 31'999;
  int64_t output_bytes_max = int64_t{256} << 20;  // of one member
  int64_t done_members_max = 2'000;               // whose files are kept after their end
  int64_t done_bytes_max = int64_t{2} << 30;
};

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitRefused = 2;  // by another cell's server, or the directory is another agent's

// Runs until SIGTERM or SIGINT (tasks go on; the next agent in this directory adopts them) and returns the
// exit code. `spawner` is from fork_spawner(), which must come before anything that could start a thread.
int run_agent(const AgentOptions& options, Fd spawner);

}  // namespace muster::agent
