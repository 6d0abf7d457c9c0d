#include "scheduler/attempt.h"

#include <algorithm>
#include <utility>

namespace muster::scheduler {
namespace {

// Devices of one model if one has enough (the one with the least left over), else the lowest of those
// allowed.
DevicePositions choose_devices(const View& view, const NodeView& node, const TaskRequest& task,
                               const Models& models) {
  const auto count = static_cast<size_t>(task.each.gpus);
  DevicePositions out;
  if (count == 0) return out;
  absl::InlinedVector<std::pair<ModelId, size_t>, 4> free;
  for (const DeviceView& device : node.devices) {
    if (!device.free || !models.allow(device.model)) continue;
    auto it = std::find_if(free.begin(), free.end(),
                           [&](const auto& entry) { return entry.first == device.model; });
    if (it == free.end()) it = free.insert(free.end(), {device.model, 0});
    ++it->second;
  }
  const std::pair<ModelId, size_t>* best = nullptr;
  for (const auto& entry : free) {
    if (entry.second < count) continue;
    if (best == nullptr || std::tie(entry.second, view.models()[entry.first]) <
                               std::tie(best->second, view.models()[best->first])) {
      best = &entry;
    }
  }
  for (size_t position = 0; position < node.devices.size() && out.size() < count; ++position) {
    const DeviceView& device = node.devices[position];
    if (!device.free || !models.allow(device.model) || (best != nullptr && device.model != best->first))
      continue;
    out.push_back(static_cast<uint16_t>(position));
  }
  return out;
}

}  // namespace

Models::Models(const View& view, const TaskRequest& task, const std::set<std::string>& avoid) {
  if (task.each.gpus == 0 || (task.gpu_models.empty() && avoid.empty())) return;
  any_ = false;
  allowed_.resize(view.models().size());
  for (size_t id = 0; id < allowed_.size(); ++id) {
    const std::string& model = view.models()[id];
    const auto& wanted = task.gpu_models;
    const bool named = wanted.empty() || std::find(wanted.begin(), wanted.end(), model) != wanted.end();
    allowed_[id] = named && avoid.count(model) == 0;
  }
}

uint32_t room_on(const NodeView& node, const TaskRequest& task, const Models& models, uint32_t wanted) {
  int64_t room = wanted;
  if (task.per_node > 0) room = std::min<int64_t>(room, task.per_node);
  const Resources& each = task.each;
  if (each.cpu_milli > 0) room = std::min(room, node.cpu_milli / each.cpu_milli);
  if (each.memory_bytes > 0) room = std::min(room, node.memory_bytes / each.memory_bytes);
  if (each.gpus > 0) {
    int64_t free = 0;
    for (const DeviceView& device : node.devices) {
      if (device.free && models.allow(device.model)) ++free;
    }
    room = std::min(room, std::min(free, node.gpus) / each.gpus);
  }
  if (room <= 0 || !labels_admit(task, *node.node)) return 0;
  return static_cast<uint32_t>(room);
}

Attempt::Attempt(View& view, const Shape& shape, const std::set<std::string>& avoid, uint64_t& steps)
    : view_(view), shape_(shape), steps_(steps) {
  uint32_t first = 0;
  for (const TaskRequest& task : shape.tasks) {
    models_.emplace_back(view, task, avoid);
    first_rank_.push_back(first);
    first += task.members;
  }
  members_.resize(first);
}

bool Attempt::place(const std::vector<size_t>& order, const Domain* domain) {
  const size_t mark = view_.mark();
  for (size_t task : order) {
    if (place_task(task, shape_.tasks[task].packed ? domain : nullptr)) continue;
    view_.roll_back(mark);
    return false;
  }
  return true;
}

bool Attempt::may_hold(const Domain* domain) {
  const auto nodes = [&](bool bound, const auto& visit) {
    const size_t count = bound ? domain->nodes.size() : view_.nodes().size();
    for (size_t i = 0; i < count; ++i) {
      ++steps_;
      if (!visit(bound ? domain->nodes[i] : static_cast<NodeId>(i))) return;
    }
  };
  Resources together;
  for (size_t task = 0; task < shape_.tasks.size(); ++task) {
    const bool bound = domain != nullptr && shape_.tasks[task].packed;
    uint32_t missing = shape_.tasks[task].members;
    nodes(bound, [&](NodeId node) { return (missing -= room(task, node, missing)) > 0; });
    if (missing > 0) return false;
    if (domain == nullptr || bound) together += shape_.tasks[task].each * shape_.tasks[task].members;
  }
  Resources free;
  nodes(domain != nullptr, [&](NodeId id) {
    const NodeView& node = view_.nodes()[id];
    free += {node.cpu_milli, node.memory_bytes, node.gpus};
    return !free.covers(together);
  });
  return free.covers(together);
}

uint32_t Attempt::room(size_t task, NodeId node, uint32_t wanted) const {
  return room_on(view_.nodes()[node], shape_.tasks[task], models_[task], wanted);
}

GangFit Attempt::fit() {
  GangFit out;
  out.members = std::move(members_);
  for (const PlacedMember& member : out.members) {
    const NodeView& node = view_.nodes()[member.node];
    for (uint16_t position : member.devices) out.models[view_.models()[node.devices[position].model]] += 1000;
  }
  return out;
}

Attempt::Score Attempt::score_of(const NodeView& node, const TaskRequest& task, NodeId id) {
  uint32_t missed = 0;
  for (const LabelRule& rule : task.prefer) missed += has_one_of(*node.node, rule) ? 0 : 1;
  const bool wasteful = task.each.gpus == 0 && !node.devices.empty();
  return {missed, wasteful, node.gpus - task.each.gpus, node.cpu_milli - task.each.cpu_milli, id};
}

void Attempt::consider(size_t task, NodeId id) {
  ++steps_;
  const uint32_t here = room(task, id, shape_.tasks[task].members);
  if (here > 0) candidates_.push_back({score_of(view_.nodes()[id], shape_.tasks[task], id), id, here});
}

// A node that takes a member has still less left over, so that it stays the best until it is full: filling
// the nodes in the order of their first score is best fit for every member.
bool Attempt::place_task(size_t task, const Domain* domain) {
  const uint32_t members = shape_.tasks[task].members;
  candidates_.clear();
  if (domain != nullptr) {
    for (NodeId id : domain->nodes) consider(task, id);
  } else {
    for (NodeId id = 0; id < view_.nodes().size(); ++id) consider(task, id);
  }
  uint64_t room = 0;
  for (const Candidate& candidate : candidates_) room += candidate.room;
  if (room < members) return false;
  const auto better = [](const Candidate& a, const Candidate& b) { return a.score < b.score; };
  if (members == 1) {
    take(task, 0, std::min_element(candidates_.begin(), candidates_.end(), better)->node);
    return true;
  }
  std::sort(candidates_.begin(), candidates_.end(), better);
  uint32_t placed = 0;
  for (const Candidate& candidate : candidates_) {
    for (uint32_t i = 0; i < candidate.room && placed < members; ++i) take(task, placed++, candidate.node);
  }
  return true;
}

void Attempt::take(size_t task, uint32_t index, NodeId id) {
  ++steps_;
  const TaskRequest& request = shape_.tasks[task];
  PlacedMember& member = members_[first_rank_[task] + index];
  member.node = id;
  member.devices = choose_devices(view_, view_.nodes()[id], request, models_[task]);
  view_.take(id, request.each, member.devices);
}

}  // namespace muster::scheduler
