#include "agent/task_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/files.h"

namespace muster::agent {
namespace {

constexpr size_t kStackBytes = 1 << 20;

// What the child is given, and what it says: its memory is ours until exec.
struct Child {
  const char* directory = nullptr;
  char** argv = nullptr;
  pid_t supervisor = 0;
  int output = -1;
  const int* cgroups = nullptr;  // cgroup.procs files, opened
  size_t cgroup_count = 0;
  int error = 0;
  const char* step = nullptr;
};

// Only system calls from here to exec.
__attribute__((no_sanitize("address"))) int become_task(void* argument) {
  auto* child = static_cast<Child*>(argument);
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != child->supervisor) _exit(126);  // it died before that could count
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  child->step = "cannot enter its cgroup";
  bool ok = true;
  for (size_t i = 0; ok && i < child->cgroup_count; ++i) ok = write(child->cgroups[i], "0", 1) == 1;
  if (ok) {
    child->step = "cannot enter the directory ";
    ok = chdir(child->directory) == 0;
  }
  if (ok) {
    dup2(child->output, 1);
    dup2(child->output, 2);
    child->step = "cannot run ";
    execvp(child->argv[0], child->argv);
  }
  child->error = errno;
  _exit(errno == ENOENT || errno == ENOTDIR ? 127 : 126);
}

std::string failure_text(const Child& child, const TaskCommand& command) {
  const std::string step = child.step;
  const bool directory = step.find("directory") != std::string::npos;
  const bool run = step.find("run") != std::string::npos;
  return step +
         (directory ? command.directory
          : run     ? command.words.front()
                    : "") +
         ": " + strerror(child.error);
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

absl::StatusOr<TaskProcess> start_task(const TaskCommand& command, const TaskCgroup& cgroup) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("cannot make", "a pipe", errno);
  TaskProcess task;
  task.output = Fd(ends[0]);
  const Fd output_end(ends[1]);
  fcntl(task.output.get(), F_SETFL, O_NONBLOCK);
  absl::StatusOr<std::vector<Fd>> cgroups = cgroup.open_to_enter();
  if (!cgroups.ok()) return cgroups.status();
  std::vector<int> cgroup_fds;
  for (const Fd& fd : *cgroups) cgroup_fds.push_back(fd.get());

  std::vector<std::string> pairs;
  for (const auto& [name, value] : command.environment) pairs.push_back(name + "=" + value);
  std::vector<char*> envp = pointers(pairs);
  std::vector<char*> argv = pointers(command.words);
  Child child{command.directory.c_str(), argv.data(),       getpid(),
              output_end.get(),          cgroup_fds.data(), cgroup_fds.size()};

  void* stack =
      mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return system_error("cannot make", "a stack", errno);
  char** const ours = environ;
  environ = envp.data();  // execvp looks along PATH: the job's own counts
  task.pid =
      clone(become_task, static_cast<char*>(stack) + kStackBytes, CLONE_VM | CLONE_VFORK | SIGCHLD, &child);
  const int clone_error = errno;
  environ = ours;
  munmap(stack, kStackBytes);
  if (task.pid < 0) return system_error("cannot fork", "the task", clone_error);
  if (child.error != 0) task.failed = failure_text(child, command);
  return task;
}

}  // namespace muster::agent
