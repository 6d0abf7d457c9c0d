#include "agent/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agent/cgroup.h"
#include "agent/done_files.h"
#include "agent/files.h"
#include "agent/inventory.h"
#include "agent/members.h"
#include "agent/node_identity.h"
#include "agent/output_readers.h"
#include "agent/poller.h"
#include "agent/report_journal.h"
#include "agent/session.h"

namespace muster::agent {
namespace {

constexpr int kTickMs = 1000;
constexpr int kClearingMs = 50;
constexpr int kFollowMs = 100;

class Agent {
 public:
  Agent(AgentOptions options, Fd spawner) : options_(std::move(options)), spawner_(std::move(spawner)) {}

  absl::Status open();
  int run();

 private:
  absl::Status open_journal();
  void find_limits();
  void take_signals();
  void on_session();
  void on_event(Session::Event event);
  void on_message(const v1::ServerMessage& message);
  void opened(const v1::Welcome& welcome);
  v1::Hello hello() const;
  void commit_and_send();
  void tick();
  int wait_ms() const;

  AgentOptions options_;
  SpawnerClient spawner_;
  Fd lock_;
  NodeIdentity identity_;
  bool fresh_ = false;
  std::vector<std::string> notes_;
  CgroupTrees cgroups_;
  v1::NodeDescription description_;
  Poller poller_;
  std::unique_ptr<ReportJournal> journal_;
  std::unique_ptr<DoneFiles> done_;
  std::unique_ptr<Members> members_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<OutputReaders> readers_;
  Fd signals_;
  Fd connected_;
  uint64_t session_number_ = 0;  // of the open session; 0: none
  uint64_t sent_ = 0;            // the last report that went into it
  int64_t next_tick_ms_ = 0;
  std::optional<int> exit_code_;
};

absl::Status Agent::open() {
  options_.dir = std::filesystem::absolute(options_.dir).lexically_normal().string();
  for (const char* sub : {"/tasks", "/done"}) {
    if (absl::Status status = make_directories(options_.dir + sub); !status.ok()) return status;
    chmod((options_.dir + sub).c_str(), 0700);  // orders hold jobs' environments
  }
  absl::StatusOr<Fd> lock = lock_agent_dir(options_.dir);
  if (!lock.ok()) return lock.status();
  lock_ = std::move(*lock);
  absl::StatusOr<NodeIdentity> identity = load_identity(options_.dir, options_.name, host_name(), &fresh_);
  if (!identity.ok()) return identity.status();
  identity_ = std::move(*identity);
  if (absl::Status status = open_journal(); !status.ok()) return status;
  find_limits();
  const std::string address =
      options_.address.empty() ? local_address_towards(options_.servers.front()) : options_.address;
  description_ = describe_node(options_, address, notes_);
  for (const std::string& note : description_.notes()) spdlog::info("{}", note);

  connected_.reset(::open((options_.dir + "/connected").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!connected_) return system_error("cannot create", options_.dir + "/connected", errno);
  done_ =
      std::make_unique<DoneFiles>(options_.dir + "/done", options_.done_members_max, options_.done_bytes_max);
  MembersOptions members{options_.dir,        identity_.name,    address, cgroups_, options_.output_bytes_max,
                         options_.port_first, options_.port_last};
  members_ = std::make_unique<Members>(std::move(members), &poller_, &spawner_, journal_.get(), done_.get());
  members_->adopt();
  return absl::OkStatus();
}

absl::Status Agent::open_journal() {
  const std::string path = options_.dir + "/reports";
  if (!fresh_) {
    std::string said;
    absl::StatusOr<std::unique_ptr<ReportJournal>> journal =
        ReportJournal::open(path, identity_.incarnation, &said);
    if (!said.empty()) spdlog::warn("{}", said);
    if (journal.ok()) {
      journal_ = std::move(*journal);
      return absl::OkStatus();
    }
    if (!absl::IsDataLoss(journal.status())) return journal.status();
    spdlog::error("{}: this node begins a new incarnation, and what it runs is stopped",
                  std::string(journal.status().message()));
    identity_.incarnation = random_nonzero();
  }
  absl::StatusOr<std::unique_ptr<ReportJournal>> journal = ReportJournal::create(path, identity_.incarnation);
  if (!journal.ok()) return journal.status();
  journal_ = std::move(*journal);
  return save_identity(options_.dir,
                       identity_);  // the journal first: an identity without one would be damage
}

void Agent::find_limits() {
  // Two agents of one name (in tests, or in two cells) must not share their tasks' groups.
  const std::string group = absl::StrCat(absl::StrReplaceAll(identity_.name, {{"/", "_"}, {"\n", "_"}}), ".",
                                         absl::Hex(identity_.incarnation, absl::kZeroPad16));
  cgroups_ = find_cgroups(read_file("/proc/self/mounts").value_or(""),
                          read_file("/proc/self/cgroup").value_or(""), group, &notes_);
}

// ---- the session ----

v1::Hello Agent::hello() const {
  v1::Hello out;
  out.set_cell(identity_.cell);
  out.set_node(identity_.name);
  out.set_incarnation(identity_.incarnation);
  *out.mutable_description() = description_;
  for (const v1::MemberRef& ref : members_->present()) *out.add_tasks()->mutable_member() = ref;
  return out;
}

void Agent::on_session() {
  for (Session::Event& event : session_->take()) on_event(std::move(event));
}

void Agent::on_event(Session::Event event) {
  switch (event.kind) {
    case Session::Event::kDialled:
      session_->hello(event.number, hello());
      return;
    case Session::Event::kOpened:
      session_number_ = event.number;
      sent_ = 0;
      readers_->reset(event.number);
      return opened(event.message.welcome());
    case Session::Event::kMessage:
      return on_message(event.message);
    case Session::Event::kClosed:
      if (event.number == session_number_) session_number_ = 0;
      readers_->reset(0);
      spdlog::warn("the session has ended: {}; tasks go on", event.text);
      return;
  }
}

void Agent::opened(const v1::Welcome& welcome) {
  if (identity_.cell.empty()) {
    identity_.cell = welcome.cell();
    if (absl::Status status = save_identity(options_.dir, identity_); !status.ok()) {
      spdlog::error("{}", std::string(status.message()));
      exit_code_ = kExitFailed;
    }
  } else if (identity_.cell != welcome.cell()) {
    spdlog::error(
        "cell: the server is of cell '{}', this agent belongs to '{}': use its own servers, or another --dir",
        welcome.cell(), identity_.cell);
    exit_code_ = kExitRefused;
  }
  spdlog::info("session {:016x} of node {} in cell '{}'", welcome.session(), identity_.name, welcome.cell());
}

void Agent::on_message(const v1::ServerMessage& message) {
  switch (message.what_case()) {
    case v1::ServerMessage::kAcknowledged:
      return journal_->acknowledge(message.acknowledged());
    case v1::ServerMessage::kPrepare:
      return members_->prepare(message.prepare());
    case v1::ServerMessage::kStart:
      return members_->start(message.start());
    case v1::ServerMessage::kStop:
      return members_->stop(message.stop());
    case v1::ServerMessage::kForget:
      return members_->forget(message.forget());
    case v1::ServerMessage::kReadOutput:
      return readers_->request(message.read_output());
    case v1::ServerMessage::kRefused:
      spdlog::error("the server refuses this node: {}", message.refused());
      if (message.refused().rfind("cell:", 0) == 0) exit_code_ = kExitRefused;
      return;
    default:
      return;
  }
}

// A report is sent once it is in the journal, and in order.
void Agent::commit_and_send() {
  if (absl::Status status = journal_->commit(); !status.ok()) {
    spdlog::error("{}; no report is sent until this works", std::string(status.message()));
    return;
  }
  members_->committed();
  if (session_number_ == 0) return;
  const auto& pending = journal_->pending();
  auto next = std::upper_bound(pending.begin(), pending.end(), sent_,
                               [](uint64_t sent, const auto& report) { return sent < report.sequence; });
  for (; next != pending.end(); ++next) {
    session_->send(session_number_, next->message);
    sent_ = next->sequence;
  }
}

// ---- the loop ----

void Agent::take_signals() {
  signalfd_siginfo info;
  if (read(signals_.get(), &info, sizeof info) == sizeof info) {
    spdlog::info("stopped by signal {}; tasks go on", info.ssi_signo);
    exit_code_ = kExitOk;
  }
}

void Agent::tick() {
  const int64_t now_ms = boottime_ms();
  if (now_ms < next_tick_ms_ && !members_->clearing()) return;
  members_->tick();
  if (now_ms < next_tick_ms_) return;
  next_tick_ms_ = now_ms + kTickMs;
  session_->check_silence();
  // For supervisors whose task must stop when the node is cut off.
  const int64_t heard_ms = session_->heard_ms();
  if (heard_ms != 0 && pwrite(connected_.get(), &heard_ms, sizeof heard_ms, 0) != sizeof heard_ms)
    spdlog::error("cannot write {}/connected: {}", options_.dir, strerror(errno));
}

int Agent::wait_ms() const {
  if (members_->clearing()) return kClearingMs;
  const auto until_tick = static_cast<int>(std::clamp<int64_t>(next_tick_ms_ - boottime_ms(), 0, kTickMs));
  return readers_->following() ? std::min(until_tick, kFollowMs) : until_tick;
}

int Agent::run() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  session_ = std::make_unique<Session>(options_.servers);
  readers_ = std::make_unique<OutputReaders>(members_.get(), session_.get());
  poller_.add(signals_.get(), [this] { take_signals(); });
  poller_.add(session_->fd(), [this] { on_session(); });
  poller_.add(spawner_.fd(), [this] {
    if (spawner_.read_replies()) return;
    spdlog::error("the spawner has died, and nothing can be started without it: the agent ends; tasks go on");
    exit_code_ = kExitFailed;
  });
  while (!exit_code_) {
    commit_and_send();
    readers_->pump();
    poller_.run_once(wait_ms());
    tick();
  }
  if (absl::Status status = journal_->commit(); !status.ok())
    spdlog::error("{}", std::string(status.message()));
  session_.reset();
  remove_cgroups(cgroups_);
  return *exit_code_;
}

// Each live member takes a few descriptors.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int run_agent(const AgentOptions& options, Fd spawner) {
  if (!spdlog::get("agent")) spdlog::set_default_logger(spdlog::stderr_color_mt("agent"));
  signal(SIGPIPE, SIG_IGN);
  sigset_t set;  // before any thread: all of them inherit it
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  raise_file_limit();
  Agent agent(options, std::move(spawner));
  if (absl::Status status = agent.open(); !status.ok()) {
    spdlog::error("{}", std::string(status.message()));
    return absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status) ? kExitRefused : kExitFailed;
  }
  return agent.run();
}

}  // namespace muster::agent
