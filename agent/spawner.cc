#include "agent/spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/files.h"
#include "agent/supervisor.h"

namespace muster::agent {
namespace {

constexpr size_t kRequestBytesMax = 64 << 10;
constexpr size_t kFdsMax = 64;

// One packet and its descriptors. 0 bytes: the other side is gone.
ssize_t receive(int socket, std::string* text, std::vector<Fd>* fds) {
  text->resize(kRequestBytesMax);
  iovec part{text->data(), text->size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kFdsMax)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = 0;
  do {
    n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  text->resize(n > 0 ? static_cast<size_t>(n) : 0);
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); n > 0 && c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    int values[kFdsMax];
    memcpy(values, CMSG_DATA(c), count * sizeof(int));
    for (size_t i = 0; i < count; ++i) fds->emplace_back(values[i]);
  }
  return n;
}

bool send(int socket, const std::string& text, const std::vector<int>& fds) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kFdsMax)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * fds.size());
  }
  ssize_t n = 0;
  do {
    n = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(text.size());
}

// Forks one supervisor and answers with its pidfd, taken while it can't have been reaped.
void serve(int socket, const std::string& text, std::vector<Fd> fds) {
  absl::StatusOr<SpawnRequest> request = SpawnRequest::decode(text);
  if (!request.ok() || fds.empty()) {
    send(socket, absl::StrCat("the request is damaged: ", request.status().ToString()), {});
    return;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    close(socket);
    Fd events = std::move(fds.front());
    run_supervisor(*request, std::move(events));
  }
  if (pid < 0) {
    send(socket, absl::StrCat("cannot fork a supervisor: ", strerror(errno)), {});
    return;
  }
  const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd) {
    send(socket, "ok", {pidfd.get()});
  } else {
    send(socket, absl::StrCat("cannot watch supervisor ", pid, ": ", strerror(errno)), {});
  }
}

[[noreturn]] void run_spawner(Fd socket) {
  setsid();
  prctl(PR_SET_NAME, "muster-spawner");
  // What the agent's own parent left open must not stay open as long as tasks run.
  const auto keep = static_cast<unsigned>(socket.get());
  if (keep > 3) close_range(3, keep - 1, 0);
  close_range(keep + 1, ~0U, 0);
  sigset_t set;
  sigfillset(&set);
  sigprocmask(SIG_BLOCK, &set, nullptr);  // supervisors start with every signal held back
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  const Fd children(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  for (;;) {
    pollfd polled[2] = {{socket.get(), POLLIN, 0}, {children.get(), POLLIN, 0}};
    if (poll(polled, 2, -1) < 0 && errno != EINTR) _exit(1);
    if (polled[1].revents != 0) {
      signalfd_siginfo ignored;
      while (read(children.get(), &ignored, sizeof ignored) > 0) {
      }
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
    }
    if (polled[0].revents != 0) {
      std::string text;
      std::vector<Fd> fds;
      if (receive(socket.get(), &text, &fds) <= 0) _exit(0);
      serve(socket.get(), text, std::move(fds));
    }
  }
}

}  // namespace

std::string SpawnRequest::encode() const {
  return absl::StrJoin({task_dir, std::to_string(run), cgroups.memory, cgroups.cpu, cgroups.pids,
                        std::string(cgroups.v2 ? "2" : "1"), connected, std::to_string(output_bytes_max)},
                       "\n");
}

absl::StatusOr<SpawnRequest> SpawnRequest::decode(const std::string& text) {
  const std::vector<std::string> f = absl::StrSplit(text, '\n');
  SpawnRequest out;
  if (f.size() != 8 || !absl::SimpleAtoi(f[1], &out.run) || !absl::SimpleAtoi(f[7], &out.output_bytes_max))
    return absl::InvalidArgumentError(absl::StrCat("a spawn request has 8 lines, this one ", f.size()));
  out.task_dir = f[0];
  out.cgroups.memory = f[2];
  out.cgroups.cpu = f[3];
  out.cgroups.pids = f[4];
  out.cgroups.v2 = f[5] == "2";
  out.connected = f[6];
  return out;
}

absl::StatusOr<Fd> fork_spawner() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return system_error("cannot make the spawner's", "socket", errno);
  Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return system_error("cannot fork", "the spawner", errno);
  if (pid == 0) {
    ours.reset();
    run_spawner(std::move(theirs));
  }
  return ours;
}

void SpawnerClient::spawn(const SpawnRequest& request, Fd events, const std::vector<int>& held, Done done) {
  Call call{request.encode(), {}, std::move(done)};
  call.fds.push_back(std::move(events));
  for (const int fd : held) {
    if (call.fds.size() < kFdsMax) call.fds.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  }
  waiting_.push_back(std::move(call));
  send_next();
}

void SpawnerClient::send_next() {
  while (!waiting_.empty() && in_flight_.size() < kInFlightMax) {
    Call call = std::move(waiting_.front());
    waiting_.pop_front();
    std::vector<int> fds;
    for (const Fd& fd : call.fds) fds.push_back(fd.get());
    if (send(socket_.get(), call.text, fds)) {
      in_flight_.push_back(std::move(call.done));
    } else {
      call.done(system_error("cannot reach", "the spawner", errno));
    }
  }
}

bool SpawnerClient::read_replies() {
  for (;;) {
    pollfd polled{socket_.get(), POLLIN, 0};
    if (poll(&polled, 1, 0) <= 0) break;
    std::string text;
    std::vector<Fd> fds;
    if (receive(socket_.get(), &text, &fds) <= 0 || in_flight_.empty()) return false;
    const Done done = std::move(in_flight_.front());
    in_flight_.pop_front();
    if (text == "ok" && !fds.empty()) {
      done(std::move(fds.front()));
    } else {
      done(absl::UnavailableError(text));
    }
  }
  send_next();
  return true;
}

}  // namespace muster::agent
