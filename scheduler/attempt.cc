#include "scheduler/attempt.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace muster::scheduler {
namespace {

// More labels than a task can prefer: what counts before them in a score is a multiple of it.
constexpr uint32_t kPreferencesMax = 1 << 16;

bool worse(const Candidate& a, const Candidate& b) {
  return a.score > b.score;
}

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
  if (!node.in_service) return 0;
  int64_t room = wanted;
  if (task.per_node > 0) room = std::min<int64_t>(room, task.per_node);
  const Resources& each = task.each;
  if (each.cpu_milli > 0) room = std::min(room, node.free.cpu_milli / each.cpu_milli);
  if (each.memory_bytes > 0) room = std::min(room, node.free.memory_bytes / each.memory_bytes);
  if (each.gpus > 0) {
    int64_t free = 0;
    for (const DeviceView& device : node.devices) {
      if (device.free && models.allow(device.model)) ++free;
    }
    room = std::min(room, std::min(free, node.free.gpus) / each.gpus);
  }
  if (room <= 0 || !labels_admit(task, node.labels())) return 0;
  return static_cast<uint32_t>(room);
}

// Models to avoid change what a task may use: such a try goes without rosters.
Attempt::Attempt(View& view, const Shape& shape, const PlaceOptions& options, uint64_t& steps)
    : view_(view), shape_(shape), steps_(steps), rosters_(options.avoid.empty() ? options.rosters : nullptr) {
  uint32_t first = 0;
  for (const TaskRequest& task : shape.tasks) {
    models_.emplace_back(view, task, options.avoid);
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
    free += node.free;
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

Score Attempt::score_of(size_t task, NodeId id) const {
  const NodeView& node = view_.nodes()[id];
  const TaskRequest& request = shape_.tasks[task];
  uint32_t missed = 0;
  for (const LabelRule& rule : request.prefer) missed += has_one_of(node.labels(), rule) ? 0 : 1;
  const bool wasteful = request.each.gpus == 0 && !node.devices.empty();
  return {missed, wasteful, node.free.gpus - request.each.gpus, node.free.cpu_milli - request.each.cpu_milli,
          id};
}

void Attempt::consider(size_t task, NodeId id, std::vector<Candidate>& out) {
  ++steps_;
  const uint32_t here = room(task, id, shape_.tasks[task].members);
  if (here > 0) out.push_back({score_of(task, id), id, here});
}

// Softly packed, and no single domain holds all: few domains rather than many, so those with the most room
// come first.
void Attempt::gather_domains(std::vector<Candidate>& candidates) const {
  std::map<std::string, int64_t> room;
  const auto domain_of = [&](NodeId id) {
    const Labels& labels = view_.nodes()[id].labels();
    const auto it = labels.find(shape_.pack_label);
    return it == labels.end() ? std::string() : it->second;
  };
  for (const Candidate& candidate : candidates) room[domain_of(candidate.node)] += candidate.room;
  room[""] = 0;  // nodes that carry no such label: last
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [domain, count] : room) order.emplace_back(-count, domain);
  std::sort(order.begin(), order.end());
  for (Candidate& candidate : candidates) {
    const auto it =
        std::lower_bound(order.begin(), order.end(),
                         std::make_pair(-room[domain_of(candidate.node)], domain_of(candidate.node)));
    std::get<0>(candidate.score) += static_cast<uint32_t>(it - order.begin()) * kPreferencesMax;
  }
}

// A node that takes a member has still less left over, so that it stays the best until it is full: filling
// the nodes in the order of their first score is best fit for every member.
bool Attempt::place_task(size_t task, const Domain* domain) {
  const bool spread = domain == nullptr && !shape_.pack_label.empty() && shape_.tasks[task].packed;
  bool fresh = false;
  Roster* roster =
      rosters_ != nullptr && domain == nullptr && !spread ? rosters_->find(shape_, task, fresh) : nullptr;
  if (roster != nullptr) return place_from(*roster, fresh, task);
  const uint32_t members = shape_.tasks[task].members;
  candidates_.clear();
  if (domain != nullptr) {
    for (NodeId id : domain->nodes) consider(task, id, candidates_);
  } else {
    for (NodeId id = 0; id < view_.nodes().size(); ++id) consider(task, id, candidates_);
  }
  uint64_t room = 0;
  for (const Candidate& candidate : candidates_) room += candidate.room;
  if (room < members) return false;
  if (spread) gather_domains(candidates_);
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

// All nodes, or those that were touched since: an entry that is out of date stays where it is until it comes
// up.
void Attempt::refill(Roster& roster, bool fresh, size_t task) {
  const std::vector<NodeId>& touched = view_.touched();
  if (fresh) {
    for (NodeId id = 0; id < view_.nodes().size(); ++id) consider(task, id, roster.heap);
    std::make_heap(roster.heap.begin(), roster.heap.end(), worse);
  } else {
    for (; roster.touched_seen < touched.size(); ++roster.touched_seen) {
      const size_t before = roster.heap.size();
      consider(task, touched[roster.touched_seen], roster.heap);
      if (roster.heap.size() > before) std::push_heap(roster.heap.begin(), roster.heap.end(), worse);
    }
  }
  roster.touched_seen = touched.size();
}

// Places taken here, and given back where it fails, are touched: the next refill() looks at these nodes
// again.
bool Attempt::place_from(Roster& roster, bool fresh, size_t task) {
  refill(roster, fresh, task);
  const uint32_t members = shape_.tasks[task].members;
  const size_t mark = view_.mark();
  uint32_t placed = 0;
  absl::flat_hash_set<NodeId> used;  // by this gang: per_node counts once
  while (placed < members && !roster.heap.empty()) {
    std::pop_heap(roster.heap.begin(), roster.heap.end(), worse);
    const Candidate best = roster.heap.back();
    roster.heap.pop_back();
    ++steps_;
    if (used.contains(best.node) || best.score != score_of(task, best.node)) continue;
    const uint32_t here = room(task, best.node, members - placed);
    for (uint32_t i = 0; i < here; ++i) take(task, placed++, best.node);
    if (here > 0 && placed < members) used.insert(best.node);
  }
  if (placed < members) view_.roll_back(mark);
  return placed == members;
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
