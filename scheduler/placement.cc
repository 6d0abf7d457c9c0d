#include "scheduler/placement.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "absl/numeric/int128.h"

namespace muster::scheduler {
namespace {

bool has_one_of(const Node& node, const LabelRule& rule) {
  const auto it = node.labels.find(rule.label);
  return it != node.labels.end() &&
         std::find(rule.values.begin(), rule.values.end(), it->second) != rule.values.end();
}

// Which models a task may use; made once for a gang.
class Models {
 public:
  Models(const View& view, const TaskRequest& task, const std::set<std::string>& avoid) {
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
  bool allow(ModelId model) const { return any_ || allowed_[model]; }

 private:
  bool any_ = true;
  std::vector<bool> allowed_;
};

// Smaller is better: labels it would rather have, a node without GPUs for a member without, then the least
// left over.
using Score = std::tuple<uint32_t, bool, int64_t, int64_t, NodeId>;

struct Candidate {
  Score score;
  NodeId node;
  uint32_t room;
};

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

Score score_of(const NodeView& node, const TaskRequest& task, NodeId id) {
  uint32_t missed = 0;
  for (const LabelRule& rule : task.prefer) {
    if (!has_one_of(*node.node, rule)) ++missed;
  }
  const bool wasteful = task.each.gpus == 0 && !node.devices.empty();
  return {missed, wasteful, node.gpus - task.each.gpus, node.cpu_milli - task.each.cpu_milli, id};
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

// One try of one gang: which nodes its packed tasks may use, in which order its tasks are placed.
class Attempt {
 public:
  Attempt(View& view, const Shape& shape, const std::set<std::string>& avoid, uint64_t& steps)
      : view_(view), shape_(shape), steps_(steps) {
    uint32_t first = 0;
    for (const TaskRequest& task : shape.tasks) {
      models_.emplace_back(view, task, avoid);
      first_rank_.push_back(first);
      first += task.members;
    }
    members_.resize(first);
  }

  // `domain`: the nodes for packed tasks; null: all.
  bool place(const std::vector<size_t>& order, const Domain* domain) {
    const size_t mark = view_.mark();
    for (size_t task : order) {
      if (!place_task(task, shape_.tasks[task].packed ? domain : nullptr)) {
        view_.roll_back(mark);
        return false;
      }
    }
    return true;
  }

  // Whether each packed task alone has room there: what can't be is not tried.
  bool may_hold(const Domain& domain) {
    for (size_t task = 0; task < shape_.tasks.size(); ++task) {
      if (!shape_.tasks[task].packed) continue;
      int64_t missing = shape_.tasks[task].members;
      for (NodeId id : domain.nodes) {
        if (missing <= 0) break;
        ++steps_;
        missing -=
            room_on(view_.nodes()[id], shape_.tasks[task], models_[task], static_cast<uint32_t>(missing));
      }
      if (missing > 0) return false;
    }
    return true;
  }

  GangFit fit() {
    GangFit out;
    out.members = std::move(members_);
    for (const PlacedMember& member : out.members) {
      const NodeView& node = view_.nodes()[member.node];
      for (uint16_t position : member.devices)
        out.models[view_.models()[node.devices[position].model]] += 1000;
    }
    return out;
  }

 private:
  void consider(size_t task, NodeId id) {
    ++steps_;
    const TaskRequest& request = shape_.tasks[task];
    const NodeView& node = view_.nodes()[id];
    const uint32_t room = room_on(node, request, models_[task], request.members);
    if (room > 0) candidates_.push_back({score_of(node, request, id), id, room});
  }

  // A node that takes a member has still less left over, so that it stays the best until it is full: filling
  // the nodes in the order of their first score is best fit for every member.
  bool place_task(size_t task, const Domain* domain) {
    const TaskRequest& request = shape_.tasks[task];
    candidates_.clear();
    if (domain != nullptr) {
      for (NodeId id : domain->nodes) consider(task, id);
    } else {
      for (NodeId id = 0; id < view_.nodes().size(); ++id) consider(task, id);
    }
    uint64_t room = 0;
    for (const Candidate& candidate : candidates_) room += candidate.room;
    if (room < request.members) return false;
    const auto better = [](const Candidate& a, const Candidate& b) { return a.score < b.score; };
    if (request.members == 1) {
      take(task, first_rank_[task], std::min_element(candidates_.begin(), candidates_.end(), better)->node);
      return true;
    }
    std::sort(candidates_.begin(), candidates_.end(), better);
    uint32_t placed = 0;
    for (const Candidate& candidate : candidates_) {
      for (uint32_t i = 0; i < candidate.room && placed < request.members; ++i, ++placed) {
        take(task, first_rank_[task] + placed, candidate.node);
      }
    }
    return true;
  }

  void take(size_t task, uint32_t rank, NodeId id) {
    ++steps_;
    const TaskRequest& request = shape_.tasks[task];
    PlacedMember& member = members_[rank];
    member.node = id;
    member.devices = choose_devices(view_, view_.nodes()[id], request, models_[task]);
    view_.take(id, request.each, member.devices);
  }

  View& view_;
  const Shape& shape_;
  uint64_t& steps_;
  std::vector<Models> models_;
  std::vector<uint32_t> first_rank_;
  std::vector<PlacedMember> members_;
  std::vector<Candidate> candidates_;
};

// Parts in a million of the resource that it takes most of.
int64_t dominant_share(const TaskRequest& task, const Resources& total, int64_t times) {
  const auto share = [times](int64_t each, int64_t of) -> int64_t {
    if (each == 0) return 0;
    if (of == 0) return std::numeric_limits<int64_t>::max();
    const absl::int128 parts = absl::int128(each) * times * 1'000'000 / of;
    const absl::int128 most = std::numeric_limits<int64_t>::max();
    return static_cast<int64_t>(parts < most ? parts : most);
  };
  return std::max({share(task.each.cpu_milli, total.cpu_milli),
                   share(task.each.memory_bytes, total.memory_bytes), share(task.each.gpus, total.gpus)});
}

using Orders = std::vector<std::vector<size_t>>;

void add_order(Orders& orders, std::vector<size_t> order) {
  if (std::find(orders.begin(), orders.end(), order) == orders.end()) orders.push_back(std::move(order));
}

// The orders to try tasks in, the likeliest first: the most demanding task; the largest member; the same with
// what is bound to a domain first; and last the other way round.
Orders orders_of(const Shape& shape, const Resources& total) {
  std::vector<size_t> spec(shape.tasks.size());
  for (size_t i = 0; i < spec.size(); ++i) spec[i] = i;
  if (spec.size() < 2) return {spec};
  Orders orders;
  const auto sorted = [&](const auto& key) {
    std::vector<size_t> out = spec;
    std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
    return out;
  };
  const auto by_task = [&](size_t i) {
    return dominant_share(shape.tasks[i], total, shape.tasks[i].members);
  };
  const auto by_member = [&](size_t i) { return dominant_share(shape.tasks[i], total, 1); };
  const auto bound = [&](std::vector<size_t> order) {
    std::stable_partition(order.begin(), order.end(), [&](size_t i) { return shape.tasks[i].packed; });
    return order;
  };
  const std::vector<size_t> demanding = sorted(by_task), large = sorted(by_member);
  if (!shape.pack_label.empty()) add_order(orders, bound(demanding));
  add_order(orders, demanding);
  add_order(orders, large);
  add_order(orders, sorted([&](size_t i) { return shape.tasks[i].each.gpus; }));
  add_order(orders, std::vector<size_t>(demanding.rbegin(), demanding.rend()));
  return orders;
}

// The domains in the order to be tried: the least free first.
std::vector<const Domain*> domains_by_free(View& view, const std::string& label, uint64_t& steps) {
  std::vector<std::tuple<int64_t, int64_t, const Domain*>> free;
  for (const Domain& domain : view.domains(label)) {
    int64_t gpus = 0, cpu = 0;
    for (NodeId id : domain.nodes) {
      ++steps;
      gpus += view.nodes()[id].gpus;
      cpu += view.nodes()[id].cpu_milli;
    }
    free.emplace_back(gpus, cpu, &domain);
  }
  // Domains lie in one vector, by value: their addresses break ties as their values would.
  std::sort(free.begin(), free.end());
  std::vector<const Domain*> out;
  for (const auto& entry : free) out.push_back(std::get<2>(entry));
  return out;
}

}  // namespace

bool labels_admit(const TaskRequest& task, const Node& node) {
  for (const LabelRule& rule : task.require) {
    if (!has_one_of(node, rule)) return false;
  }
  for (const LabelRule& rule : task.exclude) {
    if (has_one_of(node, rule)) return false;
  }
  return true;
}

uint32_t room_for(const View& view, const TaskRequest& task, NodeId node, uint32_t wanted) {
  return room_on(view.nodes()[node], task, Models(view, task, {}), wanted);
}

std::optional<GangFit> place_gang(View& view, const Shape& shape, const std::set<std::string>& avoid,
                                  uint64_t& steps) {
  Attempt attempt(view, shape, avoid, steps);
  const Orders orders = orders_of(shape, view.total());
  if (!shape.pack_label.empty()) {
    for (const Domain* domain : domains_by_free(view, shape.pack_label, steps)) {
      if (!attempt.may_hold(*domain)) continue;
      for (const std::vector<size_t>& order : orders) {
        if (attempt.place(order, domain)) return attempt.fit();
      }
    }
    if (!shape.pack_soft) return std::nullopt;
  }
  for (const std::vector<size_t>& order : orders) {
    if (attempt.place(order, nullptr)) return attempt.fit();
  }
  return std::nullopt;
}

}  // namespace muster::scheduler
