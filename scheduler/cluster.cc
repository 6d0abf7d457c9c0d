#include "scheduler/cluster.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "scheduler/check.h"

namespace muster::scheduler {
namespace {

constexpr size_t kRecentMax = 8192;

DeviceSlot* slot_of(Node& node, uint32_t index) {
  for (DeviceSlot& slot : node.devices) {
    if (slot.index == index) return &slot;
  }
  return nullptr;
}

const DeviceSlot* slot_of(const Node& node, uint32_t index) {
  for (const DeviceSlot& slot : node.devices) {
    if (slot.index == index) return &slot;
  }
  return nullptr;
}

void sort_by_index(std::vector<DeviceSlot>& devices) {
  std::sort(devices.begin(), devices.end(),
            [](const DeviceSlot& a, const DeviceSlot& b) { return a.index < b.index; });
}

// The described devices with what is held on them, and the held ones that the description no longer names.
std::vector<DeviceSlot> merged(const std::vector<DeviceSlot>& described,
                               const std::vector<DeviceSlot>& before) {
  std::vector<DeviceSlot> out;
  for (const DeviceSlot& device : described) out.push_back({device.index, device.model});
  sort_by_index(out);
  out.erase(std::unique(out.begin(), out.end(),
                        [](const DeviceSlot& a, const DeviceSlot& b) { return a.index == b.index; }),
            out.end());
  const size_t count = out.size();
  for (const DeviceSlot& slot : before) {
    if (!slot.held) continue;
    const auto end = out.begin() + static_cast<std::ptrdiff_t>(count);
    const auto it =
        std::find_if(out.begin(), end, [&](const DeviceSlot& device) { return device.index == slot.index; });
    if (it != end) {
      it->held = true;
      it->holder = slot.holder;
    } else {
      out.push_back({slot.index, "", true, slot.holder, true});
    }
  }
  sort_by_index(out);
  return out;
}

}  // namespace

Resources Node::free() const {
  return {std::max<int64_t>(0, allocatable.cpu_milli - used.cpu_milli),
          std::max<int64_t>(0, allocatable.memory_bytes - used.memory_bytes),
          std::max<int64_t>(0, allocatable.gpus - used.gpus)};
}

void Cluster::describe(const std::string& name, uint64_t revision, const Resources& allocatable,
                       const std::vector<DeviceSlot>& devices,
                       const std::map<std::string, std::string>& labels) {
  Node& node = nodes_[name];
  const Node before = node;
  node.name = name;
  node.described = true;
  node.revision = revision;
  node.allocatable = allocatable;
  node.devices = merged(devices, before.devices);
  node.labels = labels;
  if (node == before) return;
  ++freed_;
  ++described_;
}

void Cluster::set_session(const std::string& name, uint64_t session) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) defect(absl::StrCat("session for node ", name, ", which is not in the cluster"));
  it->second.session = session;
}

void Cluster::set_schedulable(const std::string& name, bool schedulable, bool draining) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) defect(absl::StrCat("readiness of node ", name, ", which is not in the cluster"));
  if (schedulable && !it->second.schedulable) ++freed_;
  it->second.schedulable = schedulable;
  it->second.draining = draining;
  changed(name);
}

void Cluster::remove(const std::string& name) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end()) return;
  ++described_;
  if (it->second.members == 0) {
    nodes_.erase(it);
    return;
  }
  Node& node = it->second;
  Node rest;
  rest.name = name;
  rest.used = node.used;
  rest.members = node.members;
  rest.devices = merged({}, node.devices);
  node = std::move(rest);
}

void Cluster::changed(const std::string& name) {
  const size_t at = changes_++ % kRecentMax;
  if (at == recent_.size()) recent_.emplace_back();
  recent_[at] = name;
}

bool Cluster::changed_since(uint64_t since, std::vector<std::string>& names) const {
  if (since > changes_ || changes_ - since > recent_.size()) return false;
  for (; since < changes_; ++since) names.push_back(recent_[since % kRecentMax]);
  return true;
}

const Node* Cluster::find(const std::string& name) const {
  const auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : &it->second;
}

bool Cluster::can_hold(const std::string& name, const Holding& holding) const {
  const Node* node = find(name);
  if (node == nullptr || !node->schedulable || !node->free().covers(holding.amount)) return false;
  if (static_cast<int64_t>(holding.devices.size()) != holding.amount.gpus) return false;
  for (size_t i = 0; i < holding.devices.size(); ++i) {
    const DeviceSlot* slot = slot_of(*node, holding.devices[i]);
    if (slot == nullptr || slot->held || slot->gone) return false;
    const auto end = holding.devices.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(holding.devices.begin(), end, holding.devices[i]) != end) return false;
  }
  return true;
}

void Cluster::hold(const std::string& name, const Holding& holding) {
  Node& node = nodes_[name];
  node.name = name;
  node.used += holding.amount;
  ++node.members;
  ++held_;
  changed(name);
  for (uint32_t index : holding.devices) {
    DeviceSlot* slot = slot_of(node, index);
    if (slot == nullptr) {
      node.devices.push_back({index, "", true, holding.holder, true});
      sort_by_index(node.devices);
      continue;
    }
    if (slot->held) defect(absl::StrCat("device ", index, " of node ", name, " is held twice"));
    slot->held = true;
    slot->holder = holding.holder;
  }
}

void Cluster::release(const std::string& name, const Holding& holding) {
  const auto it = nodes_.find(name);
  if (it == nodes_.end())
    defect(absl::StrCat("gives back a place on node ", name, ", which is not in the cluster"));
  Node& node = it->second;
  if (node.members == 0 || !node.used.covers(holding.amount)) {
    defect(absl::StrCat("gives back more than is held on node ", name));
  }
  node.used -= holding.amount;
  --node.members;
  ++freed_;
  changed(name);
  for (uint32_t index : holding.devices) {
    DeviceSlot* slot = slot_of(node, index);
    if (slot == nullptr || !slot->held || slot->holder != holding.holder) {
      defect(absl::StrCat("gives back device ", index, " of node ", name, ", which it does not hold"));
    }
    if (slot->gone) {
      node.devices.erase(node.devices.begin() + (slot - node.devices.data()));
    } else {
      slot->held = false;
      slot->holder = GangKey{};
    }
  }
  if (!node.described && node.members == 0) nodes_.erase(it);
}

}  // namespace muster::scheduler
