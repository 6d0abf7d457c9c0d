// The supervisor: one small single-threaded process for each running task. It outlives the agent, is the
// task's parent and reaper, and puts the task's end on disk. It dies with nothing left of its task: the
// task's main process dies with it (PR_SET_PDEATHSIG), and what had left the process group comes back to it
// (PR_SET_CHILD_SUBREAPER).
//
// Its life: lock the directory; if the run was ever started, or has an end, leave; limits; the synced
// `started` mark; fork and exec; copy the output; wait. A stop request (the file `stop`, then SIGUSR1) is
// signal → grace → SIGKILL of all that the task has started. Then the end is written, said on the pipe, and
// synced.
#pragma once

#include "agent/fd.h"
#include "agent/spawner.h"

namespace muster::agent {

inline constexpr char kEventStarted = 'S';
inline constexpr char kEventEnded = 'E';

// In a process just forked by the spawner, with all signals blocked.
[[noreturn]] void run_supervisor(const SpawnRequest& request, Fd events);

}  // namespace muster::agent
