// `muster local`: a whole cell on this machine, in the foreground.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/files.h"
#include "agent/inventory.h"
#include "storage/open_log.h"
#include "tools/cli/args.h"
#include "tools/cli/client.h"
#include "tools/local/cell_dir.h"
#include "tools/local/daemons.h"
#include "tools/spec/quantity.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

constexpr const char* kFooter =
    R"(Prints `server PID HOST:PORT` and `agent NAME PID` at each start, then `ready`. What dies is started again.
Ctrl-C stops the server and the agents and leaves tasks running; the next `muster local` in DIR takes them over.
`--stop` ends everything, tasks too. The agents share this machine: each offers all its processors, and its part
of the memory; GPUs that are found are the first agent's.

Examples:
  muster local --dir cell
  muster local --dir cell --agents 2 --cpu 4 --gpu 8 --gpu-model a100     # declared, for trying things out
  muster local --dir cell --log kafka:localhost:9092/lab)";
constexpr int kAgentsMax = 100;
constexpr int kPortFirst = 20'000, kPortsAll = 12'000;
constexpr int kLookMs = 50;
constexpr int64_t kSayAfterMs = 15'000;

struct LocalOptions {
  std::string dir, listen = "127.0.0.1:7070", log, cpu, memory, gpu_model;
  int agents = 3, gpus = -1;
  int64_t lease_ms = -1;
  bool stop = false, autoscale = false;
};

std::string agent_name(int i) {
  return absl::StrCat("a", i + 1);
}

// Port 0 becomes a free one: the agents need to know it, and it must stay the same through restarts.
absl::StatusOr<std::string> fixed_address(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(listen.substr(colon + 1), &port) ||
      port < 0 || port > 65'535)
    return absl::InvalidArgumentError(absl::StrCat("--listen ", listen, ": must be HOST:PORT"));
  if (port != 0) return listen;
  const agent::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!fd || bind(fd.get(), generic, size) != 0 || getsockname(fd.get(), generic, &size) != 0)
    return absl::InternalError("there is no free port on this machine");
  return absl::StrCat(listen.substr(0, colon), ":", ntohs(address.sin_port));
}

Daemon server_daemon(const LocalOptions& options, const CellDir& dir, const std::string& address) {
  Daemon out;
  out.label = "server";
  out.after_pid = address;
  out.argv = {"muster", "server",     "--log",    options.log.empty() ? "embedded:" + dir.log() : options.log,
              "--dir",  dir.server(), "--listen", address};
  if (options.lease_ms >= 0) {
    out.argv.push_back("--lease");
    out.argv.push_back(spec::print_duration(options.lease_ms));
  }
  out.log = dir.server_log();
  return out;
}

Daemon agent_daemon(const LocalOptions& options, const CellDir& dir, const std::string& address, int i) {
  const std::string name = agent_name(i);
  const int ports = kPortsAll / options.agents;
  Daemon out;
  out.label = "agent " + name;
  out.argv = {"muster",   "agent",
              "--server", address,
              "--dir",    dir.agent(name),
              "--name",   name,
              "--ports",  absl::StrCat(kPortFirst + i * ports, "-", kPortFirst + (i + 1) * ports - 1)};
  const auto add = [&](const std::string& option, const std::string& value) {
    if (value.empty()) return;
    out.argv.push_back(option);
    out.argv.push_back(value);
  };
  std::string memory = options.memory;
  if (memory.empty()) {
    const auto meminfo = agent::read_file("/proc/meminfo");
    const int64_t total = meminfo.ok() ? agent::memory_total_bytes(*meminfo) : 0;
    if (total > 0) memory = absl::StrCat(total / options.agents);
  }
  add("--cpu", options.cpu);
  add("--memory", memory);
  // Devices that are found belong to one node only.
  const int gpus = options.gpus < 0 && i > 0 ? 0 : options.gpus;
  if (gpus >= 0) add("--gpu", absl::StrCat(gpus));
  if (gpus > 0) add("--gpu-model", options.gpu_model);
  out.log = dir.agent_log(name);
  return out;
}

// What is missing until the cell can be used; "" when nothing is.
std::string missing(Client& client, int agents) {
  v1::ServerStatus status;
  v1::ListNodesReply nodes;
  if (absl::Status bad = client.call(&v1::Muster::Stub::GetStatus, v1::GetStatusRequest(), &status);
      !bad.ok())
    return "the server does not answer yet";
  if (!status.caught_up()) return "the server is still reading its log";
  if (absl::Status bad = client.call(&v1::Muster::Stub::ListNodes, v1::ListNodesRequest(), &nodes); !bad.ok())
    return "the server does not answer yet";
  std::set<std::string> connected;
  for (const v1::NodeView& node : nodes.nodes()) {
    if (node.connected()) connected.insert(node.state().name());
  }
  for (int i = 0; i < agents; ++i) {
    if (!connected.contains(agent_name(i)))
      return absl::StrCat("agent ", agent_name(i), " has not connected yet");
  }
  return "";
}

// True when SIGINT, SIGTERM or SIGHUP came within a moment.
bool told_to_stop(const sigset_t& signals) {
  const timespec moment = {0, kLookMs * 1'000'000};
  const int signal = sigtimedwait(&signals, nullptr, &moment);
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

int keep_running(const LocalOptions& options, const CellDir& dir, Daemons* daemons,
                 const std::string& address, const sigset_t& signals) {
  Client client(address);
  const int64_t began_ms = monotonic_ms();
  bool ready = false, said = false;
  while (!told_to_stop(signals)) {
    if (absl::Status bad = daemons->look(); !bad.ok()) return fail(bad);
    if (ready) continue;
    if (const Daemon* daemon = daemons->hopeless()) {
      std::cerr << "muster local: the " << daemon->label << " can't be started:\n"
                << last_lines(daemon->log, 5);
      return kFailed;
    }
    const std::string lacks = missing(client, options.agents);
    ready = lacks.empty();
    if (ready) std::cout << "ready" << std::endl;
    if (!ready && !said && monotonic_ms() - began_ms > kSayAfterMs) {
      said = true;
      std::cerr << "muster local: not ready yet: " << lacks << "; see the *.log files in " << dir.path()
                << std::endl;
    }
  }
  return kDone;
}

int run_local(const LocalOptions& options, const CellDir& dir) {
  const absl::StatusOr<std::string> address = fixed_address(options.listen);
  if (!address.ok()) return fail(address.status());
  if (!options.log.empty()) {
    const auto parsed = storage::parse_log_address(options.log);
    if (!parsed.ok()) return fail(parsed.status());
  }
  if (absl::Status bad = dir.create(); !bad.ok()) return fail(bad);
  const absl::StatusOr<agent::Fd> lock = dir.lock();
  if (!lock.ok()) return fail(lock.status());

  // Before any thread exists: all signals come to this one.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&signals, signal);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&signals, SIGHUP);  // ignored under nohup
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  std::vector<Daemon> daemons = {server_daemon(options, dir, *address)};
  for (int i = 0; i < options.agents; ++i) daemons.push_back(agent_daemon(options, dir, *address, i));
  Daemons running(std::move(daemons));
  const int code = keep_running(options, dir, &running, *address, signals);
  running.stop();
  return code;
}

}  // namespace

int local_main(int argc, char** argv) {
  Arguments app("Runs a cell on this machine: a server and agents, each a process of its own.", argv[0]);
  LocalOptions options;
  app.add_option("--dir", options.dir, "where the cell is kept")->type_name("DIR")->required();
  app.add_flag("--stop", options.stop, "end everything that runs in DIR, tasks too");
  app.add_option("--listen", options.listen, "default 127.0.0.1:7070; port 0: any")->type_name("HOST:PORT");
  app.add_option("--agents", options.agents, "default 3: a1, a2, a3")
      ->type_name("N")
      ->check(CLI::Range(0, kAgentsMax));
  app.add_option("--cpu", options.cpu, "of each agent")->type_name("N");
  app.add_option("--memory", options.memory, "of each agent")->type_name("SIZE");
  app.add_option("--gpu", options.gpus, "of each agent, declared")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));
  app.add_option("--gpu-model", options.gpu_model, "of the declared ones")->type_name("MODEL");
  app.add_option("--log", options.log, "embedded:DIR or kafka:BROKERS/CELL; default: embedded, in DIR/log")
      ->type_name("LOG");
  add_duration(app, "--lease", &options.lease_ms, "of a new log; default 2s");
  app.add_flag("--autoscale", options.autoscale)->group("");
  app.footer(kFooter);
  if (auto code = parse(app, argc, argv)) return *code;
  if (options.autoscale)
    return fail(absl::InvalidArgumentError("'--autoscale' is planned and not served yet by this release"));
  if (!options.gpu_model.empty() && options.gpus < 0)
    return usage_error(app, "--gpu-model is of declared devices; give --gpu too");
  std::error_code ignored;
  const CellDir dir(std::filesystem::absolute(options.dir, ignored).lexically_normal().string());
  return options.stop ? stop_local(dir) : run_local(options, dir);
}

}  // namespace muster::tools
