#include "scheduler/view.h"

#include <algorithm>

#include "scheduler/check.h"

namespace muster::scheduler {

View::View(const Cluster& cluster)
    : source_(&cluster), described_(cluster.described()), changes_(cluster.changes()) {
  nodes_.reserve(cluster.nodes().size());
  for (const auto& entry : cluster.nodes()) {
    if (entry.second.described) add(entry.second);
  }
}

void View::add(const Node& node) {
  ids_[node.name] = static_cast<NodeId>(nodes_.size());
  NodeView& view = nodes_.emplace_back();
  view.facts = std::make_shared<const NodeFacts>(NodeFacts{node.name, node.labels});
  view.allocatable = node.allocatable;
  for (const DeviceSlot& slot : node.devices) {
    if (!slot.gone) view.devices.push_back({slot.index, intern(slot.model), false});
  }
  update(view, node);
}

// What changes without a new description. Both lists of devices are by index; the cluster's also has those
// that are gone.
void View::update(NodeView& view, const Node& node) {
  total_ -= view.free;
  view.in_service = node.schedulable;
  view.draining = node.draining;
  int64_t count = 0;
  size_t at = 0;
  for (const DeviceSlot& slot : node.devices) {
    if (slot.gone) continue;
    DeviceView& device = view.devices[at++];
    device.free = node.schedulable && !slot.held;
    count += device.free ? 1 : 0;
  }
  view.free = node.schedulable ? node.free() : Resources{};
  view.free.gpus = std::min(count, view.free.gpus);
  total_ += view.free;
}

bool View::refresh(const Cluster& cluster) {
  check(taken_.empty(), "a view is refreshed while places are taken on it");
  std::vector<std::string> changed;
  if (source_ != &cluster || described_ != cluster.described() || !cluster.changed_since(changes_, changed)) {
    return false;
  }
  changes_ = cluster.changes();
  for (const std::string& name : changed) {
    const auto it = ids_.find(name);
    if (it != ids_.end()) update(nodes_[it->second], *cluster.find(name));
  }
  return true;
}

View View::emptied() const {
  View out = *this;
  out.total_ = Resources{};
  for (NodeView& node : out.nodes_) {
    node.in_service = true;
    node.free = node.allocatable;
    node.free.gpus = std::min<int64_t>(node.free.gpus, static_cast<int64_t>(node.devices.size()));
    for (DeviceView& device : node.devices) device.free = true;
    out.total_ += node.free;
  }
  return out;
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
    const auto it = nodes_[id].labels().find(label);
    if (it != nodes_[id].labels().end()) by_value[it->second].push_back(id);
  }
  std::vector<Domain>& out = domains_[label];
  for (auto& [value, nodes] : by_value) out.push_back({value, std::move(nodes)});
  return out;
}

void View::take(NodeId id, const Resources& amount, const DevicePositions& devices) {
  NodeView& node = nodes_[id];
  node.free -= amount;
  for (uint16_t position : devices) node.devices[position].free = false;
  taken_.push_back({id, amount, devices});
  touched_.push_back(id);
}

void View::roll_back(size_t mark) {
  while (taken_.size() > mark) {
    const Taken& last = taken_.back();
    NodeView& node = nodes_[last.node];
    node.free += last.amount;
    for (uint16_t position : last.devices) node.devices[position].free = true;
    touched_.push_back(last.node);
    taken_.pop_back();
  }
}

}  // namespace muster::scheduler
