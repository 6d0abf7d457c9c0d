// `muster local --stop`: what is left after `muster local` and its daemons have gone are the tasks, each
// under a supervisor that holds its directory's lock. They get their signal and their grace.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include <filesystem>
#include <functional>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "agent/processes.h"
#include "agent/task_dir.h"
#include "tools/cli/client.h"
#include "tools/local/cell_dir.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDaemonsMs = 20'000;
constexpr int64_t kGraceMostMs = 10'000;
constexpr int64_t kAfterGraceMs = 5'000;

bool wait_until(int64_t most_ms, const std::function<bool()>& done) {
  for (const int64_t until = monotonic_ms() + most_ms; monotonic_ms() < until; sleep_ms(20)) {
    if (done()) return true;
  }
  return done();
}

bool locked(const std::string& path) {
  const agent::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd.valid() && flock(fd.get(), LOCK_SH | LOCK_NB) != 0;
}

struct Task {
  agent::TaskDir dir;
  pid_t supervisor = 0;
  v1::PrepareOrder order;
};

// The tasks whose supervisor lives.
std::vector<Task> living_tasks(const CellDir& dir) {
  std::vector<Task> out;
  std::error_code ignored;
  for (const std::string& name : dir.agents()) {
    for (const auto& entry : fs::directory_iterator(dir.agent(name) + "/tasks", ignored)) {
      Task task{agent::TaskDir(entry.path().string())};
      auto record = task.dir.read();
      if (!record.ok() || !record->supervisor || !locked(task.dir.file("task"))) continue;
      if (agent::process_start_time(record->supervisor->pid) != record->supervisor->start_time) continue;
      task.supervisor = record->supervisor->pid;
      task.order = std::move(record->order);
      out.push_back(std::move(task));
    }
  }
  return out;
}

int64_t ask_to_stop(const Task& task) {
  agent::StopRequest request{kGraceMostMs, SIGTERM};
  request.grace_ms = std::min(request.grace_ms, task.order.grace_ms());
  if (const int signal = agent::signal_number(task.order.signal()); signal > 0) request.signal = signal;
  if (absl::Status bad = task.dir.add_stop(request); !bad.ok())
    std::cerr << "muster local: " << bad.message() << "\n";
  kill(task.supervisor, SIGUSR1);
  return request.grace_ms;
}

size_t stop_tasks(const CellDir& dir) {
  const std::vector<Task> tasks = living_tasks(dir);
  int64_t grace_ms = 0;
  for (const Task& task : tasks) grace_ms = std::max(grace_ms, ask_to_stop(task));
  const bool ended = wait_until(grace_ms + kAfterGraceMs, [&] { return living_tasks(dir).empty(); });
  if (ended) return tasks.size();
  // A task dies with its supervisor.
  for (const Task& task : living_tasks(dir)) kill(task.supervisor, SIGKILL);
  wait_until(kAfterGraceMs, [&] { return living_tasks(dir).empty(); });
  return tasks.size();
}

}  // namespace

int stop_local(const CellDir& dir) {
  const pid_t pid = dir.running();
  if (pid > 0) {
    kill(pid, SIGTERM);
    if (!wait_until(kDaemonsMs, [&] { return dir.running() == 0; })) {
      kill(pid, SIGKILL);
      wait_until(kDaemonsMs, [&] { return dir.running() == 0; });
    }
  }
  // The daemons have their own end when `muster local` was killed; they hold their locks until then.
  wait_until(kDaemonsMs, [&] { return !locked(dir.server() + "/lock"); });
  const size_t tasks = stop_tasks(dir);
  if (!living_tasks(dir).empty()) {
    std::cerr << "muster local: some tasks in " << dir.path() << " could not be ended; look at " << dir.path()
              << "/agents/*/tasks/*/pid\n";
    return kFailed;
  }
  if (pid > 0) std::cout << "stopped `muster local`, process " << pid << ", with its server and agents\n";
  if (tasks > 0) std::cout << "ended " << tasks << (tasks == 1 ? " task\n" : " tasks\n");
  if (pid == 0 && tasks == 0) std::cout << "nothing runs in " << dir.path() << "\n";
  return kDone;
}

}  // namespace muster::tools
