// A little language for the planner's tests: nodes, queues and gangs in a line each, and a fold that applies
// a round's decisions as the log would, checking each.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/planner.h"

namespace muster::scheduler {

constexpr int64_t kGi = int64_t{1} << 30;

// A node, by what is changed of 8 CPUs, 64 Gi and no GPU.
struct NodeSpec {
  std::string name;
  int64_t cpu = 8;
  int64_t memory_gi = 64;
  std::vector<std::string> gpus = {};  // by index, their models
  std::map<std::string, std::string> labels = {};
};

inline std::vector<std::string> gpus(int count, const std::string& model) {
  return std::vector<std::string>(static_cast<size_t>(count), model);
}

// A gang under construction: `Ask(2).gpu(8).model("a100")` is two members of 8 a100 each.
class Ask {
 public:
  explicit Ask(uint32_t members = 1) {
    shape_.queue = "default";
    task(members);
  }
  Ask& task(uint32_t members, const std::string& name = "main") {
    TaskRequest task;
    task.name = name;
    task.members = members;
    task.each.cpu_milli = 1000;
    shape_.tasks.push_back(task);
    return *this;
  }
  Ask& named(const std::string& name) { return last().name = name, *this; }
  Ask& cpu_milli(int64_t milli) { return last().each.cpu_milli = milli, *this; }
  Ask& cpu(int64_t count) { return cpu_milli(count * 1000); }
  Ask& memory_gi(int64_t count) { return last().each.memory_bytes = count * kGi, *this; }
  Ask& gpu(int64_t count) { return last().each.gpus = count, *this; }
  Ask& model(const std::string& model) { return last().gpu_models.push_back(model), *this; }
  Ask& only_model(const std::string& model) { return last().gpu_models = {model}, *this; }
  Ask& require(const std::string& label, std::vector<std::string> values) {
    return last().require.push_back({label, std::move(values)}), *this;
  }
  Ask& exclude(const std::string& label, std::vector<std::string> values) {
    return last().exclude.push_back({label, std::move(values)}), *this;
  }
  Ask& prefer(const std::string& label, std::vector<std::string> values) {
    return last().prefer.push_back({label, std::move(values)}), *this;
  }
  Ask& per_node(uint32_t count) { return last().per_node = count, *this; }
  Ask& pack(const std::string& label, bool soft = false) {
    shape_.pack_label = label;
    shape_.pack_soft = soft;
    return *this;
  }
  Ask& unpacked() { return last().packed = false, *this; }
  Ask& queue(const std::string& name) { return shape_.queue = name, *this; }
  Ask& priority(int32_t priority) { return shape_.priority = priority, *this; }
  Ask& preemptible() { return shape_.preemptible = true, *this; }
  std::shared_ptr<const Shape> shape() const { return std::make_shared<const Shape>(shape_); }

 private:
  TaskRequest& last() { return shape_.tasks.back(); }
  Shape shape_;
};

class World {
 public:
  Cluster cluster;
  Queues queues;
  Planner planner;
  int64_t now_ms = 0;
  RoundLimits limits;

  void node(const NodeSpec& spec) {
    std::vector<DeviceSlot> devices;
    for (const std::string& model : spec.gpus)
      devices.push_back({static_cast<uint32_t>(devices.size()), model});
    cluster.describe(spec.name, 1,
                     {spec.cpu * 1000, spec.memory_gi * kGi, static_cast<int64_t>(devices.size())}, devices,
                     spec.labels);
    cluster.set_schedulable(spec.name, true);
  }
  // Adds a gang that waits and gives its key; `line` is the order of adding.
  GangKey add(const Ask& ask, uint32_t copies = 1, int64_t not_before_ms = 0) {
    const GangKey key{++jobs_, 0};
    PendingGang gang{key, ask.shape(), static_cast<int64_t>(jobs_), not_before_ms, copies};
    waiting_[key] = gang;
    planner.add(gang);
    return key;
  }
  Round plan() { return planner.plan(cluster, queues, now_ms, limits); }
  bool due() const { return planner.due(cluster, queues, now_ms); }
  Explanation explain(const Ask& ask, int64_t not_before_ms = 0) const {
    return planner.explain({{999, 0}, ask.shape(), 999, not_before_ms, 1}, cluster, queues, now_ms);
  }

  // Applies a decision as the fold would; a decision that does not hold is a failure of the test.
  void fold(const Placement& placement) {
    PendingGang gang = waiting_.at(placement.key);
    Live live{gang.shape, placement, models_of(placement)};
    ASSERT_EQ(placement.members.size(), gang.shape->members());
    ASSERT_FALSE(queues.blocks(gang.shape->queue, gang.shape->total(), live.models, gang.shape->preemptible));
    each_member(live, [&](const std::string& node, const Holding& holding) {
      ASSERT_TRUE(cluster.can_hold(node, holding)) << node;
      cluster.hold(node, holding);
    });
    queues.use(gang.shape->queue, gang.shape->total(), live.models, gang.shape->preemptible);
    live_[placement.key].push_back(std::move(live));
    if (--gang.copies == 0) {
      waiting_.erase(placement.key);
      planner.remove(placement.key);
    } else {
      waiting_[placement.key] = gang;
      planner.add(gang);
    }
  }
  void fold(const Round& round) {
    for (const Placement& placement : round.placements) fold(placement);
  }
  // Plans and folds until nothing is due; how many were placed.
  size_t run() {
    size_t placed = 0;
    while (due()) {
      const Round round = plan();
      placed += round.placements.size();
      fold(round);
    }
    return placed;
  }
  // The gang's last placed element ends.
  void end(GangKey key) {
    Live live = live_.at(key).back();
    live_[key].pop_back();
    if (live_[key].empty()) live_.erase(key);
    queues.give_back(live.shape->queue, live.shape->total(), live.models, live.shape->preemptible);
    each_member(live,
                [&](const std::string& node, const Holding& holding) { cluster.release(node, holding); });
  }
  void cancel(GangKey key) {
    waiting_.erase(key);
    planner.remove(key);
  }
  bool runs(const GangKey& key) const { return live_.count(key) > 0; }
  const std::map<GangKey, PendingGang>& waiting() const { return waiting_; }
  std::vector<GangKey> live() const {
    std::vector<GangKey> out;
    for (const auto& entry : live_) out.push_back(entry.first);
    return out;
  }
  // "a:0,1 b" for members on a with devices 0 and 1, and on b.
  std::string where(const GangKey& key) const {
    std::string out;
    for (const MemberPlace& place : live_.at(key).back().placement.members) {
      out += (out.empty() ? "" : " ") + place.node;
      for (size_t i = 0; i < place.devices.size(); ++i) {
        out += (i == 0 ? ":" : ",") + std::to_string(place.devices[i]);
      }
    }
    return out;
  }
  // A cluster and queues made anew from what is live.
  void rebuild(Cluster& fresh, Queues& used) const {
    for (const auto& entry : live_) {
      for (const Live& live : entry.second) {
        each_member(live,
                    [&](const std::string& node, const Holding& holding) { fresh.hold(node, holding); });
        used.use(live.shape->queue, live.shape->total(), live.models, live.shape->preemptible);
      }
    }
  }

 private:
  struct Live {
    std::shared_ptr<const Shape> shape;
    Placement placement;
    Amounts models;
  };

  Amounts models_of(const Placement& placement) const {
    Amounts out;
    for (const MemberPlace& place : placement.members) {
      const Node* node = cluster.find(place.node);
      for (const DeviceSlot& slot : node->devices) {
        for (uint32_t index : place.devices) {
          if (slot.index == index) out[slot.model] += 1000;
        }
      }
    }
    return out;
  }
  template <typename Visit>
  static void each_member(const Live& live, const Visit& visit) {
    size_t rank = 0;
    for (const TaskRequest& task : live.shape->tasks) {
      for (uint32_t i = 0; i < task.members; ++i, ++rank) {
        const MemberPlace& place = live.placement.members[rank];
        visit(place.node, Holding{task.each, place.devices, live.placement.key});
      }
    }
  }

  uint64_t jobs_ = 0;
  std::map<GangKey, PendingGang> waiting_;
  std::map<GangKey, std::vector<Live>> live_;
};

}  // namespace muster::scheduler
