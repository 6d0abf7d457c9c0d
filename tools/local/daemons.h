// The server and the agents of `muster local`, as child processes that are started again when they die.
//
// Threading: one thread, which must live as long as the object: the children die with the thread that forked
// them (PR_SET_PDEATHSIG), so that a killed `muster local` leaves no daemon behind. Tasks are not theirs to
// take along.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster::tools {

struct Daemon {
  std::string label;              // "server" or "agent a1": begins its line at each start
  std::string after_pid;          // ends it: the server's HOST:PORT
  std::vector<std::string> argv;  // of this same program
  std::string log;                // where its output goes

  pid_t pid = 0;  // 0: it doesn't run
  int64_t started_ms = 0, start_at_ms = 0, delay_ms = 0;
  int exits = 0;  // in a row, each soon after its start, by itself (no signal)
};

class Daemons {
 public:
  explicit Daemons(std::vector<Daemon> daemons) : daemons_(std::move(daemons)) {}

  // Starts what is due and takes note of what has ended; call it often.
  absl::Status look();
  // A daemon that ends by itself as soon as it is started, time and again; null: none.
  const Daemon* hopeless() const;
  // SIGTERM to all, then SIGKILL to what is left.
  void stop();

 private:
  absl::Status start(Daemon* daemon);
  void reap();

  std::vector<Daemon> daemons_;
};

}  // namespace muster::tools
