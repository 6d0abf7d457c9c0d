// A planner that has lived through additions, cancellations, ends, drains and limits decides what a new one
// would, leaves nothing waiting that would fit, and the cluster and queues it works on equal rebuilt ones.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "scheduler/admission.h"
#include "scheduler/test_random.h"

namespace muster::scheduler {
namespace {

constexpr int kNodes = 3;
const char* const kQueues[] = {"q", "q/a", "q/b", "r"};

std::string name_of(int node) {
  return std::string(1, static_cast<char>('a' + node));
}

// In queue "r", which has limits by model, a gang names one model at most: one that may take several is tried
// with and without those that are used up, not with every mixture, so that it may fit with less free and not
// with more.
Ask random_gang() {
  Ask ask(static_cast<uint32_t>(pick(1, 4)));
  const bool by_model = one_in(4);
  random_task(ask);
  if (by_model) ask.only_model("t4");
  ask.queue(by_model ? "r" : kQueues[pick(0, 3)]).priority(pick(0, 3));
  if (one_in(2)) ask.preemptible();
  return ask;
}

Amounts random_amounts(bool by_model) {
  Amounts out;
  if (one_in(2)) out["cpu"] = pick(0, 16) * 1000;
  if (one_in(3)) out["gpu"] = pick(0, 8) * 1000;
  if (by_model && one_in(2)) out["gpu.t4"] = pick(0, 4) * 1000;
  return out;
}

struct Story {
  World w;
  std::map<std::string, NodeSpec> specs;
  std::map<std::string, std::pair<Amounts, Amounts>> rules;
  std::map<std::string, bool> in_service;

  void describe(int node) {
    const NodeSpec spec = random_node(name_of(node));
    // Devices stay: work on a device that goes is the fold's to account for.
    NodeSpec next = spec;
    if (specs.count(spec.name) > 0) next.gpus = specs[spec.name].gpus;
    specs[spec.name] = next;
    in_service[spec.name] = true;
    w.node(next);
  }

  void step() {
    switch (pick(0, 10)) {
      case 0:
      case 1:
      case 2:
        w.add(random_gang(), one_in(3) ? 3 : 1, one_in(4) ? w.now_ms + pick(1, 50) : 0);
        break;
      case 3:
        if (!w.waiting().empty()) w.cancel(w.waiting().begin()->first);
        break;
      case 4:
      case 5:
        if (!w.live().empty())
          w.end(w.live()[static_cast<size_t>(pick(0, static_cast<int>(w.live().size())))]);
        break;
      case 6:
        if (one_in(3)) describe(pick(0, kNodes));
        break;
      case 7: {
        const std::string node = name_of(pick(0, kNodes));
        if (w.cluster.find(node) == nullptr) break;
        in_service[node] = one_in(2);
        w.cluster.set_schedulable(node, in_service[node]);
        break;
      }
      case 8: {
        const std::string queue = kQueues[pick(0, 4)];
        rules[queue] = {random_amounts(queue == "r"), random_amounts(queue == "r")};
        w.queues.set(queue, 1, rules[queue].first, rules[queue].second);
        break;
      }
      case 9:
        w.now_ms += pick(1, 40);
        break;
    }
  }

  Round fresh_round() const {
    Planner fresh;
    for (const auto& entry : w.waiting()) fresh.add(entry.second);
    return fresh.plan(w.cluster, w.queues, w.now_ms, w.limits);
  }

  void check_equal_to_rebuilt() const {
    Cluster cluster;
    Queues queues;
    for (const auto& [name, spec] : specs) {
      World one;
      one.node(spec);
      const Node& node = *one.cluster.find(name);
      cluster.describe(name, 1, node.allocatable, node.devices, spec.labels);
      cluster.set_schedulable(name, in_service.at(name));
    }
    for (const auto& [name, rule] : rules) queues.set(name, 1, rule.first, rule.second);
    w.rebuild(cluster, queues);
    RC_ASSERT(cluster == w.cluster);
    RC_ASSERT(queues == w.queues);
  }

  void check_nothing_left_that_fits() const {
    View view(w.cluster);
    for (const auto& [key, gang] : w.waiting()) {
      Failure failure;
      uint64_t steps = 0;
      if (gang.not_before_ms > w.now_ms) {
        RC_ASSERT(w.planner.reason(key) == ReasonCode::kBackOff);
        continue;
      }
      RC_ASSERT(!try_gang(*gang.shape, gang.shape->total(), view, w.queues, nullptr, failure, steps));
      const Explanation why = w.planner.explain(gang, w.cluster, w.queues, w.now_ms);
      RC_ASSERT(!why.blockers.empty());
      const ReasonCode kept = w.planner.reason(key);
      RC_ASSERT((kept == ReasonCode::kNeverFits) == (why.code == ReasonCode::kNeverFits));
      RC_ASSERT((kept == ReasonCode::kNeverQueue) == (why.code == ReasonCode::kNeverQueue));
    }
  }
};

void same_placements(const Round& a, const Round& b) {
  RC_ASSERT(a.placements.size() == b.placements.size());
  for (size_t i = 0; i < a.placements.size(); ++i) {
    RC_ASSERT(a.placements[i].key == b.placements[i].key);
    for (size_t m = 0; m < a.placements[i].members.size(); ++m) {
      RC_ASSERT(a.placements[i].members[m].node == b.placements[i].members[m].node);
      RC_ASSERT(a.placements[i].members[m].devices == b.placements[i].members[m].devices);
    }
  }
  RC_ASSERT(a.wake_at_ms == b.wake_at_ms);
}

RC_GTEST_PROP(Planner, one_that_has_lived_decides_what_a_new_one_would, ()) {
  Story story;
  World& w = story.w;
  for (int node = 0; node < kNodes; ++node) story.describe(node);
  const int steps = pick(5, 40);
  for (int i = 0; i < steps; ++i) {
    story.step();
    if (one_in(3)) continue;  // several things happen between rounds
    while (true) {
      const bool due = w.due();
      const Round expected = story.fresh_round();
      if (!due) {
        RC_ASSERT(expected.placements.empty());
        break;
      }
      w.limits.decisions = static_cast<size_t>(pick(1, 4));
      const Round limited = story.fresh_round();
      const Round round = w.plan();
      same_placements(round, limited);
      w.limits = RoundLimits{};
      // Some decisions come to nothing: the gang is cancelled before its record is folded.
      for (const Placement& placement : round.placements) {
        if (w.waiting().count(placement.key) == 0) continue;
        if (one_in(6)) {
          w.cancel(placement.key);
        } else {
          w.fold(placement);
        }
      }
      RC_ASSERT(!::testing::Test::HasFailure());
    }
    story.check_nothing_left_that_fits();
    story.check_equal_to_rebuilt();
  }
  while (!w.live().empty()) w.end(w.live().front());
  for (const auto& entry : w.cluster.nodes()) {
    RC_ASSERT(entry.second.used == Resources{});
    RC_ASSERT(entry.second.members == 0u);
  }
}

}  // namespace
}  // namespace muster::scheduler
