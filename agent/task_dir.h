// One member's directory, DIR/tasks/JOB.ELEMENT.ATTEMPT.RANK: all that must outlive the agent, and what the
// agent and the member's supervisor tell each other through the disk.
//
//     order        v1::PrepareOrder, as it came
//     prepared     v1::Prepared: the address and the ports
//     script       the job's script, where it has one
//     start-RUN    v1::StartOrder of a run
//     supervisor   locked (flock) by the living supervisor; names it: boot id, pid, start time
//     started-RUN  made exclusively and synced before the task's first instruction: never started again
//     stop         grace and signal, for the supervisor
//     exit-RUN     v1::Exited without its header: the end of the run. exit-0: it never started
//     told-RUN     the report of that end is in the journal
//     output.log   what the task wrote, all runs
//     pid          of the running task, for people
//     work/        its directory, unless the job names one
//
// Whoever writes exit-RUN or started-RUN holds the lock, so that a run has one end, and no start after it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "agent/fd.h"
#include "muster/v1/service.pb.h"

namespace muster::agent {

struct SupervisorId {
  std::string boot;
  pid_t pid = 0;
  uint64_t start_time = 0;  // of /proc/PID/stat: tells a process from a later one with its pid
};

struct StopRequest {
  int64_t grace_ms = 0;
  int signal = 0;
};

class TaskDir {
 public:
  explicit TaskDir(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string name() const { return path_.substr(path_.rfind('/') + 1); }
  std::string file(const char* name) const { return path_ + "/" + name; }
  std::string file(const char* name, uint32_t run) const { return file(name) + "-" + std::to_string(run); }
  std::string output() const { return file("output.log"); }

  // Makes the directory whole or not at all.
  absl::Status create(const v1::PrepareOrder& order, const v1::Prepared& prepared) const;

  absl::StatusOr<v1::PrepareOrder> order() const;
  absl::StatusOr<v1::Prepared> prepared() const;
  absl::StatusOr<v1::StartOrder> start(uint32_t run) const;
  absl::Status write_start(const v1::StartOrder& order) const;

  absl::StatusOr<v1::Exited> exited(uint32_t run) const;
  absl::Status write_exited(const v1::Exited& exited) const;  // not synced; the caller holds the lock

  bool started(uint32_t run) const;
  bool told(uint32_t run) const;
  absl::Status mark_told(uint32_t run) const;

  absl::Status write_stop(const StopRequest& request) const;
  std::optional<StopRequest> stop() const;

  // The lock, or nothing while another process holds it.
  absl::StatusOr<Fd> lock() const;
  absl::StatusOr<SupervisorId> supervisor() const;

  // The highest run with a mark of that kind ("started", "exit"); nothing when there is none.
  std::optional<uint32_t> last_run(std::string_view kind) const;

 private:
  std::string path_;
};

}  // namespace muster::agent
