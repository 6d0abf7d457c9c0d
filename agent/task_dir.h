// One member's directory, DIR/tasks/JOB.ELEMENT.ATTEMPT.RANK: all that must outlive the agent.
//
//     task         what happened to it, in order (below)
//     output.log   what it wrote, all runs; not there until it writes
//     script       the job's script, where it has one
//     work/        the directory that it starts in, unless the job names one
//
// `task` is one append-only file, because files are what a short task costs most: a member has three inodes.
// Its records are written by the agent and by the member's supervisor, each with one write, and are framed
// with a CRC32C: a record that a dying process left torn is skipped. The file is locked (flock) by the living
// supervisor; whoever writes that a run has started or has ended holds that lock, so that a run has one end,
// and no start after it. `started` is synced before the task's first instruction: what is marked so is never
// started again under that run's number.
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

// The file, read from its beginning: of each kind the last record.
struct TaskRecord {
  v1::PrepareOrder order;
  v1::Prepared prepared;
  std::optional<v1::StartOrder> start;
  std::optional<SupervisorId> supervisor;
  std::optional<StopRequest> stop;
  uint32_t started_run = 0;       // 0: none has started
  std::optional<v1::Exited> end;  // run 0: it never started, and never will
  bool told = false;              // the report of that end is in the journal

  bool ended(uint32_t run) const { return end && (end->run() == 0 || end->run() >= run); }
};

class TaskDir {
 public:
  explicit TaskDir(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string name() const { return path_.substr(path_.rfind('/') + 1); }
  std::string file(const char* name) const { return path_ + "/" + name; }
  std::string output() const { return file("output.log"); }

  // Makes the directory whole or not at all.
  absl::Status create(const v1::PrepareOrder& order, const v1::Prepared& prepared) const;

  // DATA_LOSS when even the order is missing.
  absl::StatusOr<TaskRecord> read() const;

  absl::Status add_start(const v1::StartOrder& order) const;
  absl::Status add_stop(const StopRequest& request) const;
  absl::Status add_supervisor(const SupervisorId& id) const;
  absl::Status add_started(uint32_t run) const;       // synced, with the directory
  absl::Status add_end(const v1::Exited& end) const;  // not synced
  absl::Status add_told() const;
  absl::Status sync() const;

  // The lock, or nothing while another process holds it.
  absl::StatusOr<Fd> lock() const;

 private:
  absl::Status append(char kind, std::string_view payload, bool synced) const;

  std::string path_;
};

}  // namespace muster::agent
