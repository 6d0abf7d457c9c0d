// Members and their supervisors: starting them, hearing of them, finding them again, and what is done when
// one is gone.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/files.h"
#include "agent/member_env.h"
#include "agent/members.h"
#include "agent/processes.h"
#include "agent/supervisor.h"

namespace muster::agent {

void Members::spawn(Member* member) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return never_started(member, std::string(system_error("cannot make", "a pipe", errno).message()));
  member->events.reset(ends[0]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  member->phase = Phase::kStarting;
  const v1::MemberRef ref = member->ref;
  poller_->add(ends[0], [this, ref] { on_events(ref); });
  SpawnRequest request{member->dir.path(), member->run, options_.cgroups, options_.dir + "/connected",
                       options_.output_bytes_max};
  std::vector<int> held;
  for (const PortLease& lease : member->leases)
    if (lease.held) held.push_back(lease.held.get());
  spawner_->spawn(request, Fd(ends[1]), held, [this, ref, run = member->run](absl::StatusOr<Fd> pidfd) {
    spawned(ref, run, std::move(pidfd));
  });
}

void Members::spawned(const v1::MemberRef& ref, uint32_t run, absl::StatusOr<Fd> pidfd) {
  Member* member = find(ref);
  const bool awaited = member != nullptr && member->run == run &&
                       (member->phase == Phase::kStarting || member->phase == Phase::kRunning);
  if (!awaited) return;  // its whole life was heard on the pipe already
  if (!pidfd.ok()) {
    spdlog::error("{}: {}", member->dir.name(), std::string(pidfd.status().message()));
    return;  // the pipe closes, and the directory tells what became of it
  }
  member->pidfd = std::move(*pidfd);
  if (member->stop_asked) syscall(SYS_pidfd_send_signal, member->pidfd.get(), SIGUSR1, nullptr, 0);
}

void Members::on_events(const v1::MemberRef& ref) {
  for (;;) {
    Member* member = find(ref);
    if (member == nullptr || !member->events) return;
    char event = 0;
    const ssize_t n = read(member->events.get(), &event, 1);
    if (n < 0) return;  // nothing more now
    if (n == 0) return supervisor_gone(member);
    if (event == kEventStarted && member->phase == Phase::kStarting) {
      member->phase = Phase::kRunning;
      report_started(*member);
    } else if (event == kEventEnded) {
      return ended(member, member->run);
    }
  }
}

// Its end is on disk, or another supervisor has the task, or the task has lost its supervisor.
void Members::supervisor_gone(Member* member) {
  unwatch(member);
  const absl::StatusOr<Fd> lock = member->dir.lock();
  const absl::StatusOr<TaskRecord> record = member->dir.read();
  if (record.ok() && record->ended(member->run)) return ended(member, record->end->run());
  if (lock.ok() && !lock->valid()) {
    // Another one, of an earlier agent's order, was first: it is heard no other way that it has started.
    const bool starting = member->phase == Phase::kStarting;
    if (adopt_supervisor(member) && starting && member->phase == Phase::kRunning) report_started(*member);
    return;
  }
  if (!record.ok() || record->started_run >= member->run) return clear_leftovers(member);
  never_started(member, "its supervisor ended before the task had started");
}

// The supervisor that holds the lock. False: it has not named itself yet; `tick` tries again.
bool Members::adopt_supervisor(Member* member) {
  member->phase = Phase::kStarting;
  const absl::StatusOr<TaskRecord> record = member->dir.read();
  if (!record.ok() || !record->supervisor || record->supervisor->boot != boot_id()) return false;
  const SupervisorId& id = *record->supervisor;
  Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, id.pid, 0)));
  if (!pidfd || process_start_time(id.pid) != id.start_time) return false;
  member->pidfd = std::move(pidfd);
  if (record->started_run >= member->run) member->phase = Phase::kRunning;
  poller_->add(member->pidfd.get(), [this, ref = member->ref] {
    if (Member* found = find(ref)) supervisor_gone(found);
  });
  if (member->stop_asked) syscall(SYS_pidfd_send_signal, member->pidfd.get(), SIGUSR1, nullptr, 0);
  return true;
}

void Members::signal_stop(Member* member, const StopRequest& request) {
  member->stop_asked = true;
  if (absl::Status status = member->dir.add_stop(request); !status.ok())
    spdlog::error("{}: {}", member->dir.name(), std::string(status.message()));
  if (member->pidfd) syscall(SYS_pidfd_send_signal, member->pidfd.get(), SIGUSR1, nullptr, 0);
}

void Members::unwatch(Member* member) {
  if (member->events) poller_->remove(member->events.get());
  if (member->pidfd) poller_->remove(member->pidfd.get());
  member->events.reset();
  member->pidfd.reset();
}

// A task without its supervisor is over; what is left of it is killed before its end is told.
void Members::clear_leftovers(Member* member) {
  TaskCgroup cgroup(options_.cgroups, member->dir.name(), {1, 1, 1});
  std::vector<pid_t> left = cgroup.processes();
  if (const absl::StatusOr<TaskRecord> record = member->dir.read(); record.ok()) {
    for (const pid_t pid : processes_with(member_identity(record->order))) left.push_back(pid);
  }
  for (const pid_t pid : left) kill(pid, SIGKILL);
  if (!left.empty()) {
    if (member->phase != Phase::kClearing) ++clearing_;
    member->phase = Phase::kClearing;
    return;
  }
  if (member->phase == Phase::kClearing) --clearing_;
  cgroup.remove();
  v1::Exited exited;
  exited.set_supervisor_lost(true);
  exited.set_message("the task's supervisor died, and the task with it");
  write_end(member, std::move(exited));
}

void Members::never_started(Member* member, const std::string& message) {
  member->run = 0;
  v1::Exited exited;
  exited.set_never_started(true);
  exited.set_message(message);
  write_end(member, std::move(exited));
}

void Members::write_end(Member* member, v1::Exited exited) {
  *exited.mutable_member() = member->ref;
  exited.set_run(member->run);
  struct stat status {};
  if (stat(member->dir.output().c_str(), &status) == 0) exited.set_output_bytes(status.st_size);
  const absl::StatusOr<Fd> lock = member->dir.lock();  // nobody starts it between the look and the mark
  if (absl::Status written = member->dir.add_end(exited); !written.ok())
    spdlog::error("{}: {}", member->dir.name(), std::string(written.message()));
  ended(member, member->run);
}

void Members::ended(Member* member, uint32_t run) {
  unwatch(member);
  member->phase = Phase::kEnded;
  member->run = run;
  const v1::MemberRef ref = member->ref;
  if (member->forgotten) {
    retire(member);
  } else {
    tell_end(member);
  }
  wake_waiting(ref);
}

void Members::tick() {
  std::vector<v1::MemberRef> look;
  for (const auto& [key, member] : members_) {
    const bool unheard = member->phase == Phase::kStarting && !member->events;
    if (unheard || member->phase == Phase::kClearing) look.push_back(member->ref);
  }
  for (const v1::MemberRef& ref : look) {
    Member* member = find(ref);
    if (member == nullptr) continue;
    if (member->phase == Phase::kClearing) {
      clear_leftovers(member);
    } else if (!member->pidfd) {
      supervisor_gone(member);
    } else if (const auto record = member->dir.read(); record.ok() && record->started_run >= member->run) {
      member->phase = Phase::kRunning;
      report_started(*member);
    }
  }
}

// ---- after a restart ----

void Members::adopt() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options_.dir + "/tasks", error))
    names.push_back(entry.path().filename());
  for (const std::string& name : names) adopt_one(name);
  if (!members_.empty()) spdlog::info("took over {} members of an earlier agent", members_.size());
}

void Members::adopt_one(const std::string& name) {
  const std::string path = absl::StrCat(options_.dir, "/tasks/", name);
  TaskDir dir(path);
  const absl::StatusOr<TaskRecord> record = dir.read();
  if (absl::EndsWith(name, ".new") || !record.ok()) {
    // Half made by an agent that died, or lost by the machine: nobody was told of it, or a new incarnation
    // says it all.
    spdlog::warn("{} is not whole: deleted", path);
    std::filesystem::remove_all(path);
    return;
  }
  auto owned = std::make_unique<Member>(path);
  Member* member = owned.get();
  member->ref = record->order.member();
  if (!members_.emplace(key_of(member->ref), std::move(owned)).second) return;
  const v1::Prepared& prepared = record->prepared;
  member->leases.push_back({prepared.port(), PortRange::lease_port(prepared.port())});
  for (const v1::NamedPort& port : prepared.ports())
    member->leases.push_back({port.port(), PortRange::lease_port(port.port())});

  member->stop_asked = record->stop.has_value();
  member->run = record->start ? record->start->run() : 0;
  if (record->end && record->ended(member->run)) {
    member->run = record->end->run();
    member->phase = Phase::kEnded;
    if (!record->told) tell_end(member);
    return;
  }
  if (member->run == 0) return;  // prepared
  const absl::StatusOr<Fd> lock = dir.lock();
  if (lock.ok() && !lock->valid()) {
    adopt_supervisor(member);
  } else if (record->started_run >= member->run) {
    clear_leftovers(member);
  } else if (member->run > 1) {
    member->phase = Phase::kEnded;  // the next run was ordered, and will be again
    member->run = record->end ? record->end->run() : 0;
  }
}

}  // namespace muster::agent
