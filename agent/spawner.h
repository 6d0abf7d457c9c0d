// The spawner: a small single-threaded process, forked from the agent before any thread exists, that forks
// supervisors on request. A supervisor made so costs a fork and no exec (exec of this binary and its
// libraries takes 20–30 ms), and it is no child of the agent, whose death it must survive.
//
// The spawner ends when the agent's end of the socket closes; supervisors stay. If the spawner dies, nothing
// can be started any more: the agent ends too, and whoever keeps the agent starts it again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/cgroup.h"
#include "agent/fd.h"

namespace muster::agent {

// What a supervisor must know that is not in its task's directory.
struct SpawnRequest {
  std::string task_dir;  // absolute
  uint32_t run = 0;
  CgroupTrees cgroups;
  std::string connected;  // file with the CLOCK_BOOTTIME at which a server was last heard
  int64_t output_bytes_max = 0;

  std::string encode() const;
  static absl::StatusOr<SpawnRequest> decode(const std::string& text);
};

// Forks the spawner and returns the agent's end of its socket. Call it first: no threads, no other
// descriptors.
absl::StatusOr<Fd> fork_spawner();

// The agent's side. One thread.
class SpawnerClient {
 public:
  // A descriptor of the new supervisor (pidfd), or why there is none.
  using Done = std::function<void(absl::StatusOr<Fd>)>;

  explicit SpawnerClient(Fd socket) : socket_(std::move(socket)) {}

  // The supervisor gets `events` (its end of a pipe, on which it says 'S' once the task has started, 'E' once
  // its end is on disk, and whose closing says that it is gone), and keeps `held` open as long as it lives.
  void spawn(const SpawnRequest& request, Fd events, const std::vector<int>& held, Done done);

  int fd() const { return socket_.get(); }  // readable: call `read_replies`
  bool read_replies();                      // false: the spawner is gone

 private:
  struct Call {
    std::string text;
    std::vector<Fd> fds;
    Done done;
  };
  void send_next();

  static constexpr size_t kInFlightMax = 64;  // so that neither side ever blocks on a full socket

  Fd socket_;
  std::deque<Call> waiting_;
  std::deque<Done> in_flight_;
};

}  // namespace muster::agent
