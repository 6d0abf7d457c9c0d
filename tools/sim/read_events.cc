// Nodes and events of a scenario.
#include "absl/strings/str_cat.h"
#include "queue/validate.h"
#include "tools/sim/read_parts.h"

namespace muster::sim {

using spec::Value;

v1::NodeDescription describe(int64_t cpu_milli, int64_t memory_bytes, int64_t gpus,
                             const std::string& model) {
  v1::NodeDescription out;
  out.set_address("10.0.0.1");
  out.set_cpu_milli(cpu_milli);
  out.set_memory_bytes(memory_bytes);
  for (int64_t i = 0; i < gpus; ++i) {
    v1::Device& device = *out.add_devices();
    device.set_index(static_cast<uint32_t>(i));
    device.set_model(model);
  }
  return out;
}

namespace {

// What a node has when a scenario doesn't say: enough for anything but GPUs.
struct NodeKeys {
  std::string name, model = "gpu";
  int64_t count = 1, cpu_milli = 64'000, memory_bytes = int64_t{512} << 30, gpus = 0;
  std::vector<std::pair<std::string, std::string>> labels;
};

absl::Status read_node_key(const Value& entry, NodeKeys* keys) {
  const std::string& key = entry.key();
  if (key == "name") return entry.text(&keys->name);
  if (key == "count") return entry.integer(1, static_cast<int64_t>(kScenarioNodesMax), &keys->count);
  if (key == "cpu") return spec::read_quantity(entry, spec::parse_cpu_milli, &keys->cpu_milli);
  if (key == "memory") return spec::read_quantity(entry, spec::parse_bytes, &keys->memory_bytes);
  if (key == "gpu") return entry.integer(0, kGpusMax, &keys->gpus);
  if (key == "gpu_model") return entry.text(&keys->model);
  if (key == "members" || key == "group") return planned_here(entry);
  if (key == "labels")
    return entry.each("as in {rack: r1}", [&](const Value& label) {
      keys->labels.emplace_back(label.key(), "");
      return label.text(&keys->labels.back().second);
    });
  return entry.unknown_key(
      {"name", "count", "cpu", "memory", "gpu", "gpu_model", "members", "group", "labels"});
}

absl::Status read_set(const Value& value, ScenarioEvent* event) {
  if (event->what == "queue") {
    event->queue.set_name(event->subject);
    return read_queue_entry(value, &event->queue);
  }
  return value.each("as in {priority: 5}", [&](const Value& entry) {
    event->set.emplace_back(entry.key(), "");
    return entry.text(&event->set.back().second);
  });
}

absl::Status read_event_key(const Value& entry, ScenarioEvent* event) {
  const std::string& key = entry.key();
  int64_t number = 0;
  if (key == "at") return entry.duration_ms(&event->at_ms);
  if (key == "do" || key == "set") return absl::OkStatus();  // read first, and last
  if (key == "node" || key == "job" || key == "name") return entry.text(&event->subject);
  if (key == "gpu") return entry.integer(0, kGpusMax, &event->gpus);
  if (key == "step") {
    const absl::Status status = entry.integer(0, 1'000'000, &number);
    event->step = static_cast<uint64_t>(number);
    return status;
  }
  if (key == "spec") {
    std::vector<ScenarioNode> nodes;
    if (absl::Status bad = read_node_entry(entry, &nodes); !bad.ok()) return bad;
    if (nodes.size() != 1) return entry.error("'spec' must be one node");
    event->node = std::move(nodes.front());
    return absl::OkStatus();
  }
  if (key == "deadline" || key == "device") return planned_here(entry);
  return entry.unknown_key({"at", "do", "node", "job", "name", "set", "gpu", "step", "spec"});
}

absl::Status check_event(const Value& value, const ScenarioEvent& event) {
  const std::vector<std::string> served = {"crash",     "return",        "drain",   "undrain",  "quarantine",
                                           "partition", "heal",          "shrink",  "add-node", "cancel",
                                           "hold",      "release",       "requeue", "retry",    "update",
                                           "queue",     "restart-server"};
  const std::vector<std::string> planned = {"gpu-fault", "spot-notice",        "policy",        "group",
                                            "provider",  "restart-autoscaler", "provider-error"};
  for (const std::string& what : planned) {
    if (event.what == what) return value.planned(absl::StrCat("do: ", what));
  }
  for (const std::string& what : served) {
    if (event.what != what) continue;
    if (event.subject.empty() && what != "add-node" && what != "restart-server")
      return value.error(absl::StrCat("'", what, "' must say what: 'node', 'job' or 'name'"));
    return absl::OkStatus();
  }
  return value.error(absl::StrCat("unknown event 'do: ", event.what, "'"));
}

}  // namespace

absl::Status read_node_entry(const Value& value, std::vector<ScenarioNode>* out) {
  NodeKeys keys;
  const absl::Status read = value.each("as in {name: n, count: 4, gpu: 8}",
                                       [&](const Value& entry) { return read_node_key(entry, &keys); });
  if (!read.ok()) return read;
  if (absl::Status bad = queue::validate_node_name(keys.name, {nullptr, "name"}); !bad.ok())
    return value.error(std::string(bad.message()));
  if (out->size() + static_cast<size_t>(keys.count) > kScenarioNodesMax)
    return value.error(absl::StrCat("a scenario has at most ", kScenarioNodesMax, " nodes"));
  for (int64_t i = 0; i < keys.count; ++i) {
    ScenarioNode node;
    node.name = keys.count > 1 ? absl::StrCat(keys.name, "-", i) : keys.name;
    node.description = describe(keys.cpu_milli, keys.memory_bytes, keys.gpus, keys.model);
    for (const auto& [label, text] : keys.labels) (*node.description.mutable_labels())[label] = text;
    out->push_back(std::move(node));
  }
  return absl::OkStatus();
}

absl::Status read_event_entry(const Value& value, Scenario* scenario) {
  ScenarioEvent event;
  absl::Status read = value.each("as in {at: 30s, do: crash, node: n-1}", [&](const Value& entry) {
    return entry.key() == "do" ? entry.text(&event.what) : absl::OkStatus();
  });
  if (!read.ok()) return read;
  read = value.each("", [&](const Value& entry) { return read_event_key(entry, &event); });
  if (!read.ok()) return read;
  read = value.each("", [&](const Value& entry) {
    return entry.key() == "set" ? read_set(entry, &event) : absl::OkStatus();
  });
  if (!read.ok()) return read;
  if (absl::Status bad = check_event(value, event); !bad.ok()) return bad;
  scenario->events.push_back(std::move(event));
  return absl::OkStatus();
}

}  // namespace muster::sim
