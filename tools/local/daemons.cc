#include "tools/local/daemons.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "agent/fd.h"
#include "tools/cli/client.h"

namespace muster::tools {
namespace {

constexpr int64_t kLivedMs = 2000;  // after which a death is not its start's fault
constexpr int64_t kDelayFirstMs = 100, kDelayMostMs = 2000;
constexpr int kHopelessExits = 7;  // some five seconds: a former daemon may still be ending
constexpr int64_t kStopMs = 10'000;
constexpr off_t kLogBytesMax = 64 << 20;

// Only async-signal-safe calls: other threads may hold any lock.
[[noreturn]] void become(char* const* argv, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // it died before the line above
  setpgid(0, 0);                      // Ctrl-C is for `muster local` alone
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv("/proc/self/exe", argv);
  _exit(127);
}

agent::Fd open_log_file(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && info.st_size > kLogBytesMax)
    rename(path.c_str(), (path + ".old").c_str());
  return agent::Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
}

}  // namespace

absl::Status Daemons::start(Daemon* daemon) {
  const agent::Fd log = open_log_file(daemon->log);
  if (!log) return absl::InternalError(absl::StrCat(daemon->log, ": ", std::strerror(errno)));
  std::vector<char*> argv;
  for (std::string& word : daemon->argv) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0)
    return absl::InternalError(absl::StrCat("can't start the ", daemon->label, ": ", std::strerror(errno)));
  if (pid == 0) become(argv.data(), log.get(), parent);
  daemon->pid = pid;
  daemon->started_ms = monotonic_ms();
  std::cout << daemon->label << " " << pid << (daemon->after_pid.empty() ? "" : " ") << daemon->after_pid
            << std::endl;
  return absl::OkStatus();
}

void Daemons::reap() {
  for (Daemon& daemon : daemons_) {
    int status = 0;
    if (daemon.pid == 0 || waitpid(daemon.pid, &status, WNOHANG) != daemon.pid) continue;
    daemon.pid = 0;
    const int64_t now = monotonic_ms();
    const bool lived = now - daemon.started_ms >= kLivedMs;
    daemon.exits = WIFEXITED(status) && !lived ? daemon.exits + 1 : 0;
    daemon.delay_ms = lived ? 0 : std::clamp(daemon.delay_ms * 2, kDelayFirstMs, kDelayMostMs);
    daemon.start_at_ms = now + daemon.delay_ms;
    if (WIFSIGNALED(status)) {
      std::cerr << "muster local: " << daemon.label << " was ended by signal " << WTERMSIG(status)
                << std::endl;
    } else {
      std::cerr << "muster local: " << daemon.label << " exited " << WEXITSTATUS(status) << "; see "
                << daemon.log << std::endl;
    }
  }
}

absl::Status Daemons::look() {
  reap();
  for (Daemon& daemon : daemons_) {
    if (daemon.pid != 0 || daemon.start_at_ms > monotonic_ms()) continue;
    if (absl::Status bad = start(&daemon); !bad.ok()) return bad;
  }
  return absl::OkStatus();
}

const Daemon* Daemons::hopeless() const {
  for (const Daemon& daemon : daemons_) {
    if (daemon.exits >= kHopelessExits) return &daemon;
  }
  return nullptr;
}

void Daemons::stop() {
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (const Daemon& daemon : daemons_) {
      if (daemon.pid > 0) kill(daemon.pid, signal);
    }
    for (const int64_t until = monotonic_ms() + kStopMs; monotonic_ms() < until; sleep_ms(10)) {
      bool all = true;
      for (Daemon& daemon : daemons_) {
        if (daemon.pid > 0 && waitpid(daemon.pid, nullptr, WNOHANG) == daemon.pid) daemon.pid = 0;
        all = all && daemon.pid == 0;
      }
      if (all) return;
    }
  }
}

}  // namespace muster::tools
