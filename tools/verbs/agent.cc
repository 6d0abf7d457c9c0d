// `muster agent`: this machine, or a part of it, as a node of a cell.
#include "agent/agent.h"

#include <cstdlib>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/cli/args.h"
#include "tools/spec/quantity.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

constexpr size_t kNameMax = 200;

constexpr const char* kFooter =
    R"(Stop it with SIGTERM: its tasks go on, and the next agent in the same --dir takes them over. Where a service
manager keeps it, that one must end only the agent (systemd: KillMode=process). Exit code: 0 stopped; 1 failed;
2 usage, or refused: the directory is another agent's, or the server is of another cell.)";

struct Text {
  std::string servers;
  std::string cpu;
  std::string memory;
  std::vector<std::string> labels;
  std::string ports;
  std::string output_max;
};

absl::Status read_servers(std::string text, std::vector<std::string>* out) {
  if (text.empty()) {
    const char* from = getenv("MUSTER_SERVER");
    text = from != nullptr && *from != 0 ? from : "127.0.0.1:7070";
  }
  *out = absl::StrSplit(text, ',', absl::SkipEmpty());
  for (const std::string& server : *out) {
    uint32_t port = 0;
    const size_t colon = server.rfind(':');
    if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(server.substr(colon + 1), &port) ||
        port == 0 || port > 65'535)
      return absl::InvalidArgumentError(absl::StrCat("--server: '", server, "' is not HOST:PORT"));
  }
  return out->empty() ? absl::InvalidArgumentError("--server: names none") : absl::OkStatus();
}

absl::Status read_ports(const std::string& text, agent::AgentOptions* out) {
  if (text.empty()) return absl::OkStatus();
  const std::vector<std::string> ends = absl::StrSplit(text, '-');
  if (ends.size() != 2 || !absl::SimpleAtoi(ends[0], &out->port_first) ||
      !absl::SimpleAtoi(ends[1], &out->port_last) || out->port_first < 1024 || out->port_last > 65'535 ||
      out->port_first > out->port_last)
    return absl::InvalidArgumentError(
        absl::StrCat("--ports: '", text, "' is not FIRST-LAST with 1024 <= FIRST <= LAST <= 65535"));
  return absl::OkStatus();
}

absl::Status read_labels(const std::vector<std::string>& labels, agent::AgentOptions* out) {
  for (const std::string& label : labels) {
    const size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0)
      return absl::InvalidArgumentError(absl::StrCat("--label: '", label, "' is not KEY=VALUE"));
    out->labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  return absl::OkStatus();
}

absl::Status read_quantity(const char* option, const std::string& text,
                           absl::StatusOr<int64_t> (*parse_one)(std::string_view), int64_t* out) {
  if (text.empty()) return absl::OkStatus();
  const absl::StatusOr<int64_t> value = parse_one(text);
  if (!value.ok())
    return absl::InvalidArgumentError(absl::StrCat(option, ": ", std::string(value.status().message())));
  if (*value <= 0) return absl::InvalidArgumentError(absl::StrCat(option, ": '", text, "' must be above 0"));
  *out = *value;
  return absl::OkStatus();
}

absl::Status read_options(const Text& text, agent::AgentOptions* out) {
  if (absl::Status status = read_servers(text.servers, &out->servers); !status.ok()) return status;
  if (absl::Status status = read_ports(text.ports, out); !status.ok()) return status;
  if (absl::Status status = read_labels(text.labels, out); !status.ok()) return status;
  if (absl::Status s = read_quantity("--cpu", text.cpu, spec::parse_cpu_milli, &out->cpu_milli); !s.ok())
    return s;
  if (absl::Status s = read_quantity("--memory", text.memory, spec::parse_bytes, &out->memory_bytes); !s.ok())
    return s;
  if (absl::Status s =
          read_quantity("--output-max", text.output_max, spec::parse_bytes, &out->output_bytes_max);
      !s.ok())
    return s;
  if (!out->gpu_model.empty() && out->gpus < 0)
    return absl::InvalidArgumentError("--gpu-model: names the model of declared devices; give --gpu too");
  if (out->name.size() > kNameMax || out->name.find_first_of("/\n") != std::string::npos)
    return absl::InvalidArgumentError(
        absl::StrCat("--name: at most ", kNameMax, " characters, without '/' and line ends"));
  if (out->dir.empty() || out->dir.find('\n') != std::string::npos)
    return absl::InvalidArgumentError("--dir: a path without line ends");
  return absl::OkStatus();
}

}  // namespace

int agent_main(int argc, char** argv) {
  Arguments app("Runs the agent of a node, in the foreground.", argv[0]);
  agent::AgentOptions options;
  Text text;
  app.add_option("--server", text.servers, "HOST:PORT[,…], any servers of the cell; default MUSTER_SERVER")
      ->type_name("");
  app.add_option("--dir", options.dir,
                 "what must outlive the agent: its identity, reports, tasks, their output")
      ->type_name("")
      ->required();
  app.add_option("--name", options.name, "of the node; default: the host's, kept in --dir")->type_name("");
  app.add_option("--address", options.address,
                 "by which members reach each other; default: towards the server")
      ->type_name("");
  app.add_option("--cpu", text.cpu, "processors to give; default: those of the machine")->type_name("");
  app.add_option("--memory", text.memory,
                 "memory to give, like 16Gi; default: the machine's, or its cgroup's limit")
      ->type_name("");
  app.add_option("--gpu", options.gpus, "declares so many devices instead of asking NVML")
      ->type_name("")
      ->check(CLI::Range(0, 1024));
  app.add_option("--gpu-model", options.gpu_model, "of the declared devices, like a100")->type_name("");
  app.add_option("--label", text.labels, "KEY=VALUE of the node; may be given more than once")
      ->type_name("")
      ->allow_extra_args(false);
  app.add_option("--ports", text.ports, "FIRST-LAST: ports for members; default 20000-31999")->type_name("");
  app.add_option("--output-max", text.output_max, "of each member that is kept; default 256Mi")
      ->type_name("");
  app.footer(kFooter);
  if (auto code = parse(app, argc, argv)) return *code;
  if (absl::Status status = read_options(text, &options); !status.ok())
    return usage_error(app, std::string(status.message()));
  // Now, while this process is small and has one thread: supervisors are forks of this one.
  absl::StatusOr<agent::Fd> spawner = agent::fork_spawner();
  if (!spawner.ok()) {
    std::cerr << "muster agent: " << std::string(spawner.status().message()) << "\n";
    return kFailed;
  }
  return agent::run_agent(options, std::move(*spawner));
}

}  // namespace muster::tools
