#include "scheduler/view.h"

#include <algorithm>
#include <map>

namespace muster::scheduler {

View View::free_of(const Cluster& cluster) {
  View view;
  view.nodes_.reserve(cluster.nodes().size());
  for (const auto& entry : cluster.nodes()) {
    if (entry.second.schedulable) view.add(entry.second, entry.second.free(), false);
  }
  return view;
}

View View::emptied(const Cluster& cluster) {
  View view;
  view.nodes_.reserve(cluster.nodes().size());
  for (const auto& entry : cluster.nodes()) {
    if (entry.second.described) view.add(entry.second, entry.second.allocatable, true);
  }
  return view;
}

void View::add(const Node& node, const Resources& free, bool emptied) {
  NodeView& out = nodes_.emplace_back();
  out.node = &node;
  out.cpu_milli = free.cpu_milli;
  out.memory_bytes = free.memory_bytes;
  int64_t count = 0;
  for (const DeviceSlot& slot : node.devices) {
    if (slot.gone) continue;
    const bool is_free = emptied || !slot.held;
    out.devices.push_back({slot.index, intern(slot.model), is_free});
    if (is_free) ++count;
  }
  out.gpus = std::min(count, free.gpus);
  total_ += {out.cpu_milli, out.memory_bytes, out.gpus};
}

// A cluster has a handful of models: a walk beats a hash.
ModelId View::intern(const std::string& model) {
  const auto it = std::find(models_.begin(), models_.end(), model);
  if (it != models_.end()) return static_cast<ModelId>(it - models_.begin());
  models_.push_back(model);
  return static_cast<ModelId>(models_.size() - 1);
}

const std::vector<Domain>& View::domains(const std::string& label) {
  const auto found = domains_.find(label);
  if (found != domains_.end()) return found->second;
  std::map<std::string, std::vector<NodeId>> by_value;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    const auto it = nodes_[id].node->labels.find(label);
    if (it != nodes_[id].node->labels.end()) by_value[it->second].push_back(id);
  }
  std::vector<Domain>& out = domains_[label];
  for (auto& [value, nodes] : by_value) out.push_back({value, std::move(nodes)});
  return out;
}

void View::take(NodeId id, const Resources& amount, const DevicePositions& devices) {
  NodeView& node = nodes_[id];
  node.cpu_milli -= amount.cpu_milli;
  node.memory_bytes -= amount.memory_bytes;
  node.gpus -= amount.gpus;
  for (uint16_t position : devices) node.devices[position].free = false;
  taken_.push_back({id, amount, devices});
}

void View::roll_back(size_t mark) {
  while (taken_.size() > mark) {
    const Taken& last = taken_.back();
    NodeView& node = nodes_[last.node];
    node.cpu_milli += last.amount.cpu_milli;
    node.memory_bytes += last.amount.memory_bytes;
    node.gpus += last.amount.gpus;
    for (uint16_t position : last.devices) node.devices[position].free = true;
    taken_.pop_back();
  }
}

}  // namespace muster::scheduler
