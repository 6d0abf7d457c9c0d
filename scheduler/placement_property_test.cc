// What must hold of every placement, on small random clusters, against a brute force that knows nothing of
// best fit.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

#include "scheduler/placement.h"
#include "scheduler/test_random.h"

namespace muster::scheduler {
namespace {

// Up to four nodes, partly in use and partly out of service.
World random_world() {
  World w;
  const int nodes = pick(1, 5);
  for (int i = 0; i < nodes; ++i) {
    const NodeSpec spec = random_node(std::string(1, static_cast<char>('a' + i)));
    w.node(spec);
    if (one_in(8)) w.cluster.set_schedulable(spec.name, false);
    if (spec.gpus.empty() || one_in(2)) continue;
    const auto device = static_cast<uint32_t>(pick(0, static_cast<int>(spec.gpus.size())));
    w.cluster.hold(spec.name, {{0, 0, 1}, {device}, {1, 0}});
  }
  return w;
}

// Tries every assignment of members to nodes, and of each member's devices by how many of each model.
class BruteForce {
 public:
  BruteForce(const Cluster& cluster, const Shape& shape) : shape_(shape) {
    for (const auto& entry : cluster.nodes()) {
      if (entry.second.schedulable) nodes_.push_back(&entry.second);
    }
    for (const Node* node : nodes_) {
      Left left;
      left.amount = node->free();
      for (const DeviceSlot& slot : node->devices) left.devices[slot.model] += slot.held ? 0 : 1;
      left_.push_back(left);
    }
    for (const TaskRequest& task : shape.tasks) {
      for (uint32_t i = 0; i < task.members; ++i) members_.push_back(&task);
    }
  }

  bool fits() {
    const bool bound =
        std::any_of(members_.begin(), members_.end(), [](const auto* task) { return task->packed; });
    if (bound && !shape_.pack_label.empty()) {
      std::set<std::string> values;
      for (const Node* node : nodes_) {
        if (node->labels.count(shape_.pack_label) > 0) values.insert(node->labels.at(shape_.pack_label));
      }
      for (const std::string& value : values) {
        domain_ = &value;
        if (place(0)) return true;
      }
      domain_ = nullptr;
      if (!shape_.pack_soft) return false;
    }
    return place(0);
  }

 private:
  struct Left {
    Resources amount;
    std::map<std::string, int64_t> devices;
    std::map<const TaskRequest*, uint32_t> members;
  };

  static bool in(const Node& node, const LabelRule& rule) {
    const auto it = node.labels.find(rule.label);
    return it != node.labels.end() && std::count(rule.values.begin(), rule.values.end(), it->second) > 0;
  }
  bool admits(const Node& node, const TaskRequest& task) const {
    for (const LabelRule& rule : task.require) {
      if (!in(node, rule)) return false;
    }
    for (const LabelRule& rule : task.exclude) {
      if (in(node, rule)) return false;
    }
    if (domain_ == nullptr || !task.packed) return true;
    return in(node, {shape_.pack_label, {*domain_}});
  }

  bool place(size_t member) {
    if (member == members_.size()) return true;
    const TaskRequest& task = *members_[member];
    for (size_t i = 0; i < nodes_.size(); ++i) {
      Left& left = left_[i];
      if (!admits(*nodes_[i], task) || !left.amount.covers(task.each)) continue;
      if (task.per_node > 0 && left.members[&task] >= task.per_node) continue;
      const int64_t most = task.each.gpus == 0 ? 0 : std::min(task.each.gpus, may_use(left, task, "a100"));
      for (int64_t a100 = 0; a100 <= most; ++a100) {
        const int64_t t4 = task.each.gpus - a100;
        if (t4 > may_use(left, task, "t4")) continue;
        const Left before = left;
        left.amount -= task.each;
        left.devices["a100"] -= a100;
        left.devices["t4"] -= t4;
        ++left.members[&task];
        const bool done = place(member + 1);
        left = before;
        if (done) return true;
      }
    }
    return false;
  }
  static int64_t may_use(Left& left, const TaskRequest& task, const std::string& model) {
    const auto& models = task.gpu_models;
    const bool named = models.empty() || std::count(models.begin(), models.end(), model) > 0;
    return named ? left.devices[model] : 0;
  }

  const Shape& shape_;
  const std::string* domain_ = nullptr;
  std::vector<const Node*> nodes_;
  std::vector<Left> left_;
  std::vector<const TaskRequest*> members_;
};

// Every rule of the shape, checked on the result alone.
void check_fit(const World& w, const View& view, const Shape& shape, const GangFit& fit) {
  Cluster cluster = w.cluster;
  std::set<std::string> domains;
  size_t rank = 0;
  for (const TaskRequest& task : shape.tasks) {
    std::map<NodeId, uint32_t> on;
    for (uint32_t i = 0; i < task.members; ++i, ++rank) {
      const PlacedMember& member = fit.members[rank];
      const NodeView& node = view.nodes()[member.node];
      Holding holding{task.each, {}, {7, 0}};
      for (const uint16_t position : member.devices) {
        const DeviceView& device = node.devices[position];
        holding.devices.push_back(device.index);
        const auto& models = task.gpu_models;
        RC_ASSERT(models.empty() ||
                  std::count(models.begin(), models.end(), view.models()[device.model]) > 0);
      }
      RC_ASSERT(cluster.can_hold(node.name(), holding));
      cluster.hold(node.name(), holding);
      RC_ASSERT(labels_admit(task, node.labels()));
      ++on[member.node];
      if (!task.packed || shape.pack_label.empty() || shape.pack_soft) continue;
      RC_ASSERT(node.labels().count(shape.pack_label) > 0u);
      domains.insert(node.labels().at(shape.pack_label));
    }
    for (const auto& entry : on) RC_ASSERT(task.per_node == 0 || entry.second <= task.per_node);
  }
  RC_ASSERT(rank == fit.members.size());
  RC_ASSERT(domains.size() <= 1u);
}

bool same(const View& a, const View& b) {
  for (NodeId id = 0; id < a.nodes().size(); ++id) {
    const NodeView &x = a.nodes()[id], &y = b.nodes()[id];
    if (x.free != y.free) return false;
    for (size_t i = 0; i < x.devices.size(); ++i) {
      if (x.devices[i].free != y.devices[i].free) return false;
    }
  }
  return true;
}

RC_GTEST_PROP(Placement, one_kind_of_member_is_placed_if_and_only_if_it_fits, ()) {
  const World w = random_world();
  const auto shape = random_ask(1).shape();
  View view(w.cluster);
  const View before = view;
  uint64_t steps = 0;
  const auto fit = place_gang(view, *shape, {}, steps);
  RC_CLASSIFY(fit.has_value());
  RC_ASSERT(fit.has_value() == BruteForce(w.cluster, *shape).fits());
  if (fit) check_fit(w, view, *shape, *fit);
  if (fit) view.roll_back(0);
  RC_ASSERT(same(view, before));
}

RC_GTEST_PROP(Placement, several_kinds_are_placed_whole_and_never_where_they_do_not_fit, ()) {
  const World w = random_world();
  const auto shape = random_ask(pick(2, 4)).shape();
  View view(w.cluster);
  const View before = view;
  uint64_t steps = 0;
  const auto fit = place_gang(view, *shape, {}, steps);
  RC_CLASSIFY(fit.has_value());
  if (fit) check_fit(w, view, *shape, *fit);
  if (fit) view.roll_back(0);
  RC_ASSERT(same(view, before));
}

// Gangs of a few shapes in a random order: rosters find the same places as looking at all nodes.
RC_GTEST_PROP(Placement, rosters_change_nothing, ()) {
  const World w = random_world();
  std::vector<std::shared_ptr<const Shape>> shapes;
  for (int i = pick(1, 4); i > 0; --i) shapes.push_back(random_ask(pick(1, 3)).shape());
  View with(w.cluster), without(w.cluster);
  Rosters rosters;
  PlaceOptions options;
  options.rosters = &rosters;
  uint64_t steps = 0;
  for (int i = 0; i < 12; ++i) {
    const Shape& shape = *shapes[static_cast<size_t>(pick(0, static_cast<int>(shapes.size())))];
    const auto a = place_gang(with, shape, options, steps), b = place_gang(without, shape, {}, steps);
    RC_ASSERT(a.has_value() == b.has_value());
    for (size_t rank = 0; a && rank < a->members.size(); ++rank) {
      RC_ASSERT(a->members[rank].node == b->members[rank].node);
      RC_ASSERT(a->members[rank].devices == b->members[rank].devices);
    }
    if (!a || !one_in(4)) continue;
    const size_t back = static_cast<size_t>(pick(0, static_cast<int>(with.mark()) + 1));
    with.roll_back(back);
    without.roll_back(back);
  }
}

// Small gangs of several kinds are decided exactly, except where tasks compete for some models of one node;
// there, nothing is said to be impossible.
RC_GTEST_PROP(Placement, several_kinds_what_is_called_impossible_is, ()) {
  const World w = random_world();
  const auto shape = random_ask(2).shape();
  View view(w.cluster);
  uint64_t steps = 0;
  bool impossible = false;
  PlaceOptions options;
  options.impossible = &impossible;
  const bool found = place_gang(view, *shape, options, steps).has_value();
  const bool could = BruteForce(w.cluster, *shape).fits();
  RC_CLASSIFY(could);
  RC_CLASSIFY(could && !found, "missed");
  RC_ASSERT(could || !found);
  RC_ASSERT(!could || !impossible);
  RC_CLASSIFY(!could && !impossible, "undecided");
}

}  // namespace
}  // namespace muster::scheduler
