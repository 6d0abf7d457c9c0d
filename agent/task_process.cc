#include "agent/task_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/files.h"

namespace muster::agent {
namespace {

// What failed in the child, sent to the supervisor through a pipe that exec closes.
struct Failure {
  int error = 0;
  char step = 0;  // 'g' cgroup, 'd' directory, 'x' exec
};

[[noreturn]] void fail(int report, int error, char step) {
  const Failure failure{error, step};
  (void)!write(report, &failure, sizeof failure);
  _exit(error == ENOENT || error == ENOTDIR ? 127 : 126);
}

[[noreturn]] void become_task(const TaskCommand& command, const TaskCgroup& cgroup, pid_t supervisor,
                              int output, int report, char** argv, char** envp) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(126);  // it died before that could count
  if (absl::Status status = cgroup.enter(); !status.ok()) fail(report, EACCES, 'g');
  if (chdir(command.directory.c_str()) != 0) fail(report, errno, 'd');
  dup2(output, 1);
  dup2(output, 2);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  environ = envp;  // before execvp, which looks along PATH: the job's own counts
  execvp(argv[0], argv);
  fail(report, errno, 'x');
}

std::string step_text(char step, const TaskCommand& command) {
  switch (step) {
    case 'g':
      return "cannot enter its cgroup";
    case 'd':
      return "cannot enter the directory " + command.directory;
    default:
      return "cannot run " + command.words.front();
  }
}

}  // namespace

absl::StatusOr<TaskProcess> start_task(const TaskCommand& command, const TaskCgroup& cgroup) {
  int output[2];
  int report[2];
  if (pipe2(output, O_CLOEXEC) != 0) return system_error("cannot make", "a pipe", errno);
  TaskProcess task;
  task.output = Fd(output[0]);
  const Fd output_end(output[1]);
  fcntl(task.output.get(), F_SETFL, O_NONBLOCK);
  if (pipe2(report, O_CLOEXEC) != 0) return system_error("cannot make", "a pipe", errno);
  const Fd report_read(report[0]);
  Fd report_write(report[1]);

  std::vector<char*> argv;
  for (const std::string& word : command.words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> pairs;
  for (const auto& [name, value] : command.environment) pairs.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (const std::string& pair : pairs) envp.push_back(const_cast<char*>(pair.c_str()));
  envp.push_back(nullptr);

  const pid_t supervisor = getpid();
  task.pid = fork();
  if (task.pid < 0) return system_error("cannot fork", "the task", errno);
  if (task.pid == 0)
    become_task(command, cgroup, supervisor, output_end.get(), report_write.get(), argv.data(), envp.data());
  report_write.reset();
  Failure failure;
  ssize_t n = 0;
  do {
    n = read(report_read.get(), &failure, sizeof failure);
  } while (n < 0 && errno == EINTR);
  if (n == sizeof failure) {
    task.exec_errno = failure.error;
    task.exec_what = step_text(failure.step, command) + ": " + strerror(failure.error);
  }
  return task;
}

}  // namespace muster::agent
