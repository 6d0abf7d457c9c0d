#include "agent/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "agent/files.h"
#include "agent/processes.h"
#include "agent/task_dir.h"
#include "agent/task_output.h"
#include "agent/task_process.h"

namespace muster::agent {
namespace {

constexpr int64_t kPidsMax = 32'768;  // a fork bomb ends in its own task
constexpr int64_t kLookAtConnectionMs = 500;
constexpr int kLockTries = 100;  // 20 ms each: the supervisor of the run before may be syncing its last words

class Supervisor {
 public:
  Supervisor(const SpawnRequest& request, Fd events)
      : request_(request), dir_(request.task_dir), events_(std::move(events)) {}

  void run();

 private:
  void say(char event) const { (void)!write(events_.get(), &event, 1); }
  bool claim();
  absl::Status limit();
  void start();
  void never_started(const std::string& message);
  void watch();
  void look_at_stop();
  void look_at_connection();
  void begin_stop(int64_t grace_ms, int signal);
  void kill_all();
  void take_signals();
  void reap();
  void end(v1::Exited exited);
  int poll_timeout_ms() const;

  const SpawnRequest request_;
  const TaskDir dir_;
  Fd events_;
  Fd lock_;
  TaskRecord record_;  // as it was when this supervisor took the task
  std::optional<TaskCgroup> cgroup_;
  std::optional<TaskOutput> output_;
  TaskProcess task_;
  Fd signals_;
  bool output_open_ = true;
  bool ended_ = false;  // the main process
  int wait_status_ = 0;
  int64_t kill_at_ms_ = 0;  // 0: no stop is under way
  bool killing_ = false;
  int64_t started_ms_ = 0;
  std::string message_;
};

// False: another supervisor has the task, or the run is over.
bool Supervisor::claim() {
  absl::StatusOr<Fd> lock = dir_.lock();
  for (int i = 0; i < kLockTries && lock.ok() && !lock->valid(); ++i) {
    usleep(20'000);
    lock = dir_.lock();
  }
  if (!lock.ok() || !lock->valid()) return false;
  lock_ = std::move(*lock);
  absl::StatusOr<TaskRecord> record = dir_.read();
  if (!record.ok() || record->started_run >= request_.run || record->ended(request_.run)) return false;
  record_ = std::move(*record);
  return dir_.add_supervisor({boot_id(), getpid(), process_start_time(getpid()).value_or(0)}).ok();
}

absl::Status Supervisor::limit() {
  if (!record_.start || record_.start->run() != request_.run)
    return absl::DataLossError(absl::StrCat(dir_.file("task"), " has no order to start run ", request_.run));
  const v1::Resources& asked = record_.order.task().resources();
  cgroup_.emplace(request_.cgroups, dir_.name(),
                  CgroupLimits{asked.cpu_milli(), asked.memory_bytes(), kPidsMax});
  return cgroup_->create();
}

void Supervisor::never_started(const std::string& message) {
  v1::Exited exited;
  exited.set_never_started(true);
  exited.set_message(message);
  end(std::move(exited));
}

void Supervisor::start() {
  output_.emplace(dir_.output(), request_.output_bytes_max);
  TaskCommand command;
  command.environment =
      member_environment(record_.order, record_.prepared, *record_.start, base_environment());
  for (const std::string& name : take_out_too_long(&command.environment))
    output_->say(name + " is not set: it would be longer than 128 KiB");
  command.directory = record_.order.workdir().empty() ? dir_.file("work") : record_.order.workdir();
  command.words.assign(record_.order.task().command().begin(), record_.order.task().command().end());
  if (!record_.order.task().script().empty()) command.words = {"/bin/sh", dir_.file("script")};

  if (absl::Status mark = dir_.add_started(request_.run); !mark.ok())
    return never_started(std::string(mark.message()));
  absl::StatusOr<TaskProcess> task = start_task(command, *cgroup_);
  started_ms_ = boottime_ms();
  if (!task.ok()) {
    // The mark is there: the run counts as started, and has failed.
    v1::Exited exited;
    exited.set_code(126);
    exited.set_message(std::string(task.status().message()));
    say(kEventStarted);
    return end(std::move(exited));
  }
  task_ = std::move(*task);
  if (!task_.failed.empty()) {
    message_ = task_.failed;
    output_->say(message_);
  }
  say(kEventStarted);
  watch();
}

int Supervisor::poll_timeout_ms() const {
  if (killing_) return 20;
  int64_t timeout = -1;
  if (kill_at_ms_ != 0) timeout = std::max<int64_t>(0, kill_at_ms_ - boottime_ms());
  if (record_.order.stop_after_ms() > 0 && kill_at_ms_ == 0) timeout = kLookAtConnectionMs;
  return static_cast<int>(std::min<int64_t>(timeout, 60'000));
}

// Until the main process has ended and nothing of the task is left.
void Supervisor::watch() {
  look_at_stop();  // a request may have come before the signal could be taken
  reap();
  bool children = true;
  while (!ended_ || children) {
    pollfd polled[2] = {{signals_.get(), POLLIN, 0}, {output_open_ ? task_.output.get() : -1, POLLIN, 0}};
    poll(polled, 2, poll_timeout_ms());
    if (polled[0].revents != 0) take_signals();
    if (polled[1].revents != 0) output_open_ = output_->copy(task_.output.get());
    reap();
    if (kill_at_ms_ != 0 && boottime_ms() >= kill_at_ms_) killing_ = true;
    if (record_.order.stop_after_ms() > 0 && kill_at_ms_ == 0) look_at_connection();
    // What the main process leaves behind ends with it. As its subreaper we are the parent of all that is
    // left.
    if (ended_) {
      siginfo_t info{};
      children = !(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD);
      killing_ = killing_ || children;
    }
    if (killing_) kill_all();
  }
  while (output_open_ && output_->copy(task_.output.get())) {
    pollfd more{task_.output.get(), POLLIN, 0};
    if (poll(&more, 1, 0) <= 0) break;  // held open by something that is no child of ours any more
  }
  v1::Exited exited;
  if (WIFSIGNALED(wait_status_)) {
    exited.set_signal(WTERMSIG(wait_status_));
  } else {
    exited.set_code(WEXITSTATUS(wait_status_));
  }
  const bool failed = exited.signal() != 0 || exited.code() != 0;
  exited.set_out_of_memory(failed && cgroup_->oom_kills() > 0);
  exited.set_message(message_);
  end(std::move(exited));
}

void Supervisor::take_signals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGUSR1) look_at_stop();
  }
}

void Supervisor::reap() {
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid != task_.pid) continue;
    ended_ = true;
    wait_status_ = status;
  }
}

void Supervisor::look_at_stop() {
  const absl::StatusOr<TaskRecord> now = dir_.read();
  if (now.ok() && now->stop) begin_stop(now->stop->grace_ms, now->stop->signal);
}

// A later request may shorten the grace, never lengthen it.
void Supervisor::begin_stop(int64_t grace_ms, int signal) {
  const int64_t kill_at_ms = boottime_ms() + std::max<int64_t>(0, grace_ms);
  const bool first = kill_at_ms_ == 0;
  kill_at_ms_ = first ? kill_at_ms : std::min(kill_at_ms_, kill_at_ms);
  if (first && grace_ms > 0 && !ended_) kill(-task_.pid, signal);
}

// on_disconnect: stop_after. The agent writes down when it last heard a server; an agent that is gone writes
// nothing.
void Supervisor::look_at_connection() {
  int64_t heard_ms = started_ms_;
  int64_t written_ms = 0;
  const Fd file(open(request_.connected.c_str(), O_RDONLY | O_CLOEXEC));
  if (file && pread(file.get(), &written_ms, sizeof written_ms, 0) == sizeof written_ms)
    heard_ms = std::max(heard_ms, written_ms);
  if (boottime_ms() - heard_ms < record_.order.stop_after_ms()) return;
  message_ =
      absl::StrCat("stopped: no server was heard for ", record_.order.stop_after_ms(), " ms (on_disconnect)");
  output_->say(message_);
  const int signal = signal_number(record_.order.signal());
  begin_stop(record_.order.grace_ms(), signal != 0 ? signal : SIGTERM);
}

void Supervisor::kill_all() {
  if (!ended_) kill(-task_.pid, SIGKILL);
  cgroup_->kill_all();
  for (const pid_t child : children_of(getpid())) kill(child, SIGKILL);
}

void Supervisor::end(v1::Exited exited) {
  *exited.mutable_member() = record_.order.member();
  exited.set_run(request_.run);
  if (output_) exited.set_output_bytes(output_->bytes());
  if (cgroup_) cgroup_->remove();
  if (!dir_.add_end(exited).ok()) return;  // the disk refuses: the agent finds us gone without an end
  say(kEventEnded);
  // The agent knows; this is for the machine's own death.
  dir_.sync().IgnoreError();
}

void Supervisor::run() {
  if (!claim()) return;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGUSR1);
  signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (absl::Status status = limit(); !status.ok()) return never_started(std::string(status.message()));
  if (record_.stop) return never_started("stopped before it started");
  start();
}

}  // namespace

void run_supervisor(const SpawnRequest& request, Fd events) {
  setsid();
  prctl(PR_SET_NAME, "muster-task");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  if (null > 2) close(null);
  Supervisor(request, std::move(events)).run();
  _exit(0);
}

}  // namespace muster::agent
