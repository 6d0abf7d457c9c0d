// `muster node ls|show|drain|undrain|quarantine`.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/cli/args.h"
#include "tools/cli/client.h"
#include "tools/cli/json.h"
#include "tools/cli/text.h"
#include "tools/spec/quantity.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

std::string standing(const v1::NodeView& node) {
  const v1::NodeState& state = node.state();
  std::string out = state.lost() ? "lost" : state.unreachable() ? "unreachable" : "up";
  if (state.draining()) out += ", draining";
  if (state.quarantined()) out += ", quarantined";
  return out;
}

std::string models(const v1::NodeDescription& description) {
  std::vector<std::string> order;
  std::map<std::string, int> count;
  for (const v1::Device& device : description.devices()) ++count[device.model()];
  for (const auto& [model, devices] : count)
    order.push_back(absl::StrCat(devices, " × ", model.empty() ? "gpu" : model));
  return absl::StrJoin(order, ", ");
}

std::string labels(const v1::NodeDescription& description) {
  const std::map<std::string, std::string> sorted(description.labels().begin(), description.labels().end());
  return absl::StrJoin(sorted, " ", absl::PairFormatter("="));
}

Json node_json(const v1::NodeView& node) {
  const v1::NodeDescription& description = node.state().description();
  Json out = json_object();
  out["name"] = node.state().name();
  out["state"] = standing(node);
  out["connected"] = node.connected();
  out["address"] = description.address();
  out["cpu_milli"] = description.cpu_milli();
  out["cpu_free_milli"] = node.cpu_free_milli();
  out["memory_bytes"] = description.memory_bytes();
  out["memory_free_bytes"] = node.memory_free_bytes();
  Json devices = Json::array();
  for (const v1::Device& device : description.devices()) {
    devices.push_back(
        {{"index", device.index()}, {"model", device.model()}, {"memory_bytes", device.memory_bytes()}});
  }
  out["devices"] = std::move(devices);
  out["devices_free"] = node.devices_free();
  out["members"] = node.members();
  out["labels"] =
      std::map<std::string, std::string>(description.labels().begin(), description.labels().end());
  out["reason"] = node.state().admin_reason();
  out["version"] = description.version();
  out["notes"] = description.notes();
  return out;
}

void print_nodes(const v1::ListNodesReply& reply) {
  Table table({"NODE", "STATE", ">CPU", ">FREE", ">MEMORY", ">FREE", "GPUS", ">FREE", ">MEMBERS", "LABELS"});
  for (const v1::NodeView& node : reply.nodes()) {
    const v1::NodeDescription& description = node.state().description();
    std::string state = standing(node);
    if (!node.state().admin_reason().empty()) state += ": " + one_line(node.state().admin_reason(), 40);
    table.add({node.state().name(), state, spec::print_cpu(description.cpu_milli()),
               spec::print_cpu(node.cpu_free_milli()), spec::short_bytes(description.memory_bytes()),
               spec::short_bytes(node.memory_free_bytes()), models(description),
               description.devices().empty() ? "" : absl::StrCat(node.devices_free_size()),
               absl::StrCat(node.members()), one_line(labels(description), 80)});
  }
  table.print(std::cout);
}

void print_node(const v1::NodeView& node) {
  const v1::NodeState& state = node.state();
  const v1::NodeDescription& description = state.description();
  std::cout << "node " << state.name() << "  " << standing(node) << (node.connected() ? ", connected" : "")
            << "\n"
            << "  address     " << description.address() << "\n"
            << "  joined      " << when_text(state.joined_wall_ms(), wall_ms()) << "\n"
            << "  cpu         " << spec::print_cpu(description.cpu_milli()) << ", "
            << spec::print_cpu(node.cpu_free_milli()) << " free\n"
            << "  memory      " << spec::short_bytes(description.memory_bytes()) << ", "
            << spec::short_bytes(node.memory_free_bytes()) << " free\n";
  if (!description.devices().empty())
    std::cout << "  gpus        " << models(description)
              << ", free: " << absl::StrJoin(node.devices_free(), ",") << "\n";
  std::cout << "  members     " << node.members() << "\n";
  if (!description.labels().empty()) std::cout << "  labels      " << labels(description) << "\n";
  if (!state.admin_reason().empty()) std::cout << "  reason      " << one_line(state.admin_reason()) << "\n";
  for (const std::string& note : description.notes()) std::cout << "  note        " << one_line(note) << "\n";
}

int list(const Common& common, const std::string& name, bool one) {
  Client client(common.server);
  v1::ListNodesRequest request;
  request.set_name(name);
  v1::ListNodesReply reply;
  if (absl::Status bad = client.call(&v1::Muster::Stub::ListNodes, request, &reply); !bad.ok())
    return fail(bad);
  if (one && reply.nodes().empty()) return fail(absl::NotFoundError(absl::StrCat("no node ", name)));
  if (common.json) {
    for (const v1::NodeView& node : reply.nodes()) std::cout << line_of(node_json(node)) << "\n";
  } else if (one) {
    print_node(reply.nodes(0));
  } else {
    print_nodes(reply);
  }
  return kDone;
}

int set_nodes(const Common& common, const std::vector<std::string>& names, v1::NodeSet::Action action,
              const std::string& reason) {
  Client client(common.server);
  int first = kDone;
  for (const std::string& name : names) {
    v1::OperateRequest request;
    request.mutable_node()->set_node(name);
    request.mutable_node()->set_action(action);
    request.mutable_node()->set_reason(reason);
    v1::OperateReply reply;
    const absl::Status status = client.call(&v1::Muster::Stub::Operate, request, &reply);
    const int code = status.ok() ? kDone : fail(status);
    if (first == kDone) first = code;
  }
  return first;
}

}  // namespace

int node_main(int argc, char** argv) {
  Arguments app("Lists nodes, and takes them out of use or back.", argv[0]);
  Common common;
  std::vector<std::string> names;
  std::string name, reason;
  app.require_subcommand(1);
  CLI::App* ls = app.add_subcommand("ls", "all nodes");
  CLI::App* show = app.add_subcommand("show", "one node");
  show->add_option("NODE", name)->type_name("")->required();
  CLI::App* drain = app.add_subcommand("drain", "nothing new starts there; what runs may end");
  CLI::App* undrain = app.add_subcommand("undrain", "takes a drain or a quarantine back");
  CLI::App* quarantine =
      app.add_subcommand("quarantine", "nothing new starts there until somebody has looked");
  for (CLI::App* verb : {ls, show, drain, undrain, quarantine}) add_server(*verb, &common);
  for (CLI::App* verb : {ls, show}) add_output(*verb, &common);
  for (CLI::App* verb : {drain, undrain, quarantine})
    verb->add_option("NODE", names)->type_name("")->required();
  for (CLI::App* verb : {drain, quarantine})
    verb->add_option("--reason", reason, "said by `node ls`")->type_name("TEXT");
  if (auto code = parse(app, argc, argv)) return *code;
  if (*drain) return set_nodes(common, names, v1::NodeSet::DRAIN, reason);
  if (*undrain) return set_nodes(common, names, v1::NodeSet::UNDRAIN, "");
  if (*quarantine) return set_nodes(common, names, v1::NodeSet::QUARANTINE, reason);
  return list(common, name, static_cast<bool>(*show));
}

}  // namespace muster::tools
