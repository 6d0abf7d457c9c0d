#include "tools/bench/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tools/bench/measure.h"

namespace muster::bench {
namespace {

constexpr int kStopMs = 30'000;
constexpr size_t kQuotedBytes = 2'000;

// Only what is safe between fork and exec in a process with threads.
[[noreturn]] void become(char* const* arguments, int output, int errors, int nothing) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(nothing, 0);
  dup2(output, 1);
  dup2(errors, 2);
  execv("/proc/self/exe", arguments);
  _exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Child>> Child::start(std::vector<std::string> arguments,
                                                    const std::string& errors) {
  arguments.insert(arguments.begin(), "muster");
  std::vector<char*> raw;
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  int ends[2];
  const int error_file = open(errors.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (error_file < 0 || nothing < 0 || pipe2(ends, O_CLOEXEC) != 0)
    return absl::UnavailableError(
        absl::StrCat("cannot start `muster ", arguments[1], "`: ", strerror(errno)));
  const pid_t pid = fork();
  if (pid == 0) become(raw.data(), ends[1], error_file, nothing);
  const int failure = errno;
  close(error_file);
  close(nothing);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return absl::UnavailableError(
        absl::StrCat("cannot start `muster ", arguments[1], "`: ", strerror(failure)));
  }
  return std::unique_ptr<Child>(new Child(pid, ends[0], "muster " + arguments[1], errors));
}

Child::~Child() {
  kill();
  close(output_);
}

std::string Child::last_errors() const {
  std::ifstream in(errors_);
  std::stringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  if (text.empty()) return "; it said nothing on stderr";
  return absl::StrCat("; it said:\n", text.substr(text.size() - std::min(text.size(), kQuotedBytes)));
}

absl::StatusOr<std::string> Child::line(const std::string& prefix, int timeout_ms) {
  const StopWatch watch;
  while (true) {
    for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      const std::string one = text_.substr(0, end);
      text_.erase(0, end + 1);
      if (one.compare(0, prefix.size(), prefix) == 0) return one.substr(prefix.size());
    }
    const int left = timeout_ms - static_cast<int>(watch.ms());
    pollfd waits{output_, POLLIN, 0};
    if (left <= 0 || poll(&waits, 1, left) == 0)
      return absl::DeadlineExceededError(
          absl::StrCat("`", name_, "` did not say '", prefix, "' within ", timeout_ms, " ms", last_errors()));
    char bytes[4096];
    const ssize_t count = read(output_, bytes, sizeof bytes);
    if (count > 0) {
      text_.append(bytes, static_cast<size_t>(count));
    } else if (count == 0) {
      return absl::UnavailableError(
          absl::StrCat("`", name_, "` ended before it said '", prefix, "'", last_errors()));
    }
  }
}

void Child::kill() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

absl::Status Child::stop() {
  if (pid_ == 0) return absl::OkStatus();
  ::kill(pid_, SIGTERM);
  const StopWatch watch;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (watch.ms() > kStopMs)
      return absl::DeadlineExceededError(
          absl::StrCat("`", name_, "` did not end within ", kStopMs, " ms of SIGTERM", last_errors()));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  pid_ = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("`", name_, "` ended with wait status ", status, last_errors()));
}

absl::StatusOr<int64_t> Child::rss_bytes() const {
  std::ifstream in(absl::StrCat("/proc/", pid_, "/status"));
  std::string word;
  while (in >> word) {
    int64_t kilobytes = 0;
    if (word == "VmRSS:" && in >> kilobytes) return kilobytes * 1024;
  }
  return absl::UnavailableError(absl::StrCat("`", name_, "` has ended", last_errors()));
}

}  // namespace muster::bench
