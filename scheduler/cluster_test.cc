#include "scheduler/cluster.h"

#include <gtest/gtest.h>

#include "scheduler/queues.h"

namespace muster::scheduler {
namespace {

const GangKey kJob{1, 0}, kOther{2, 0};

Cluster one_node(int gpus) {
  Cluster cluster;
  std::vector<DeviceSlot> devices;
  for (int i = 0; i < gpus; ++i) devices.push_back({static_cast<uint32_t>(i), "a100"});
  cluster.describe("n", 1, {4000, 100, gpus}, devices, {});
  cluster.set_schedulable("n", true);
  return cluster;
}

TEST(Cluster, holds_what_is_free_and_no_more) {
  Cluster c = one_node(2);
  EXPECT_TRUE(c.can_hold("n", {{4000, 100, 2}, {0, 1}, kJob}));
  EXPECT_FALSE(c.can_hold("n", {{4001, 100, 0}, {}, kJob}));
  EXPECT_FALSE(c.can_hold("n", {{1, 1, 2}, {0, 2}, kJob})) << "no device 2";
  EXPECT_FALSE(c.can_hold("n", {{1, 1, 2}, {0, 0}, kJob})) << "one device twice";
  EXPECT_FALSE(c.can_hold("n", {{1, 1, 2}, {0}, kJob})) << "fewer devices than asked for";
  EXPECT_FALSE(c.can_hold("m", {{1, 1, 0}, {}, kJob})) << "no such node";
  c.hold("n", {{1000, 10, 1}, {1}, kJob});
  EXPECT_FALSE(c.can_hold("n", {{1, 1, 1}, {1}, kOther}));
  EXPECT_TRUE(c.can_hold("n", {{1, 1, 1}, {0}, kOther}));
  c.set_schedulable("n", false);
  EXPECT_FALSE(c.can_hold("n", {{1, 1, 1}, {0}, kOther}));
}

TEST(Cluster, giving_back_what_is_not_held_stops_the_process) {
  Cluster c = one_node(2);
  c.hold("n", {{1000, 10, 1}, {1}, kJob});
  EXPECT_DEATH(c.release("n", {{1000, 10, 1}, {1}, kOther}), "device 1 of node n, which it does not hold");
  EXPECT_DEATH(c.release("n", {{1000, 10, 1}, {0}, kJob}), "device 0 of node n, which it does not hold");
  EXPECT_DEATH(c.release("n", {{2000, 10, 1}, {1}, kJob}), "more than is held on node n");
  EXPECT_DEATH(c.release("m", {{1, 1, 0}, {}, kJob}), "node m, which is not in the cluster");
  EXPECT_DEATH(c.hold("n", {{1, 1, 1}, {1}, kOther}), "device 1 of node n is held twice");
}

TEST(Cluster, a_node_that_shrinks_under_its_tasks_grants_nothing) {
  Cluster c = one_node(4);
  c.hold("n", {{3000, 10, 2}, {2, 3}, kJob});
  c.describe("n", 2, {2000, 100, 2}, {{0, "a100"}, {1, "a100"}}, {});
  EXPECT_EQ(c.find("n")->free(), (Resources{0, 90, 0}));
  EXPECT_EQ(c.find("n")->devices.size(), 4u) << "gone devices stay listed while held";
  EXPECT_FALSE(c.can_hold("n", {{0, 1, 1}, {0}, kOther}));
  c.release("n", {{3000, 10, 2}, {2, 3}, kJob});
  EXPECT_EQ(c.find("n")->devices.size(), 2u);
  EXPECT_TRUE(c.can_hold("n", {{2000, 100, 2}, {0, 1}, kOther}));
}

TEST(Cluster, live_equals_rebuilt_when_held_devices_have_gone) {
  Cluster live = one_node(4);
  live.hold("n", {{3000, 10, 2}, {1, 3}, kJob});
  live.describe("n", 2, {2000, 100, 2}, {{0, "t4"}, {1, "t4"}}, {{"zone", "1a"}});
  Cluster rebuilt;
  rebuilt.describe("n", 2, {2000, 100, 2}, {{0, "t4"}, {1, "t4"}}, {{"zone", "1a"}});
  rebuilt.set_schedulable("n", true);
  rebuilt.hold("n", {{3000, 10, 2}, {1, 3}, kJob});
  EXPECT_TRUE(live == rebuilt);
}

TEST(Cluster, a_node_that_left_keeps_what_is_held_until_it_is_given_back) {
  Cluster c = one_node(2);
  c.hold("n", {{1000, 10, 1}, {1}, kJob});
  c.remove("n");
  Cluster rebuilt;
  rebuilt.hold("n", {{1000, 10, 1}, {1}, kJob});
  EXPECT_TRUE(c == rebuilt);
  EXPECT_FALSE(c.can_hold("n", {{0, 0, 0}, {}, kOther}));
  c.release("n", {{1000, 10, 1}, {1}, kJob});
  EXPECT_EQ(c.find("n"), nullptr);
}

TEST(Cluster, freed_grows_when_something_can_hold_more) {
  Cluster c = one_node(2);
  uint64_t before = c.freed();
  const auto grew = [&] {
    const bool out = c.freed() != before;
    before = c.freed();
    return out;
  };
  c.describe("n", 1, {4000, 100, 2}, {{0, "a100"}, {1, "a100"}}, {});
  EXPECT_FALSE(grew()) << "the same description";
  c.hold("n", {{1000, 10, 0}, {}, kJob});
  c.set_schedulable("n", false);
  EXPECT_FALSE(grew());
  c.set_schedulable("n", true);
  EXPECT_TRUE(grew());
  c.release("n", {{1000, 10, 0}, {}, kJob});
  EXPECT_TRUE(grew());
  c.describe("n", 2, {4000, 100, 2}, {{0, "a100"}, {1, "a100"}}, {{"rack", "r1"}});
  EXPECT_TRUE(grew());
}

// ---- queues ----

TEST(Queues, use_counts_for_every_queue_above) {
  Queues q;
  q.use("a/b/c", {1000, 0, 2}, {{"a100", 2000}}, false);
  q.use("a", {500, 0, 0}, {}, true);
  EXPECT_EQ(q.all().at("a").used, (Amounts{{"cpu", 1500}, {"gpu", 2000}, {"gpu.a100", 2000}}));
  EXPECT_EQ(q.all().at("a").used_not_preemptible.at("cpu"), 1000);
  EXPECT_EQ(q.all().at("a/b/c").used.at("gpu.a100"), 2000);
  q.give_back("a/b/c", {1000, 0, 2}, {{"a100", 2000}}, false);
  EXPECT_EQ(q.all().size(), 1u);
  q.give_back("a", {500, 0, 0}, {}, true);
  EXPECT_TRUE(q == Queues());
  EXPECT_DEATH(q.give_back("a", {500, 0, 0}, {}, true), "queue a, which nothing uses");
  q.set("a", 1, {}, {});
  EXPECT_DEATH(q.give_back("a", {500, 0, 0}, {}, true), "gives back 500 of cpu in queue a, which uses 0");
}

TEST(Queues, the_nearest_rule_is_told_but_never_first) {
  Queues q;
  q.set("a", 1, {}, {{"gpu", 8000}});
  q.set("a/b", 1, {{"gpu", 4000}}, {{"memory", 10}});
  q.use("a/b", {0, 0, 3}, {}, false);
  EXPECT_FALSE(q.blocks("a/b", {0, 10, 1}, {}, false));
  const auto near = q.blocks("a/b", {0, 10, 2}, {}, false);
  ASSERT_TRUE(near);
  EXPECT_EQ(near->queue, "a/b");
  EXPECT_FALSE(near->limit);
  EXPECT_FALSE(near->never);
  EXPECT_EQ(near->allowed, 4000);
  EXPECT_EQ(near->used, 3000);
  EXPECT_EQ(near->wanted, 2000);
  const auto never = q.blocks("a/b", {0, 11, 2}, {}, false);
  ASSERT_TRUE(never);
  EXPECT_TRUE(never->never);
  EXPECT_EQ(never->resource, "memory");
  EXPECT_FALSE(q.blocks("a/b", {0, 10, 5}, {}, true)) << "preemptible work may exceed the quota";
  EXPECT_EQ(q.blocks("a/b", {0, 10, 6}, {}, true)->queue, "a") << "but never a limit";
}

TEST(Queues, models_are_checked_once_known) {
  Queues q;
  q.set("a", 1, {}, {{"gpu.h100", 1000}});
  EXPECT_FALSE(q.blocks("a", {0, 0, 2}, {}, true));
  EXPECT_FALSE(q.blocks("a", {0, 0, 2}, {{"a100", 2000}}, true));
  EXPECT_EQ(q.blocks("a", {0, 0, 2}, {{"h100", 2000}}, true)->resource, "gpu.h100");
}

TEST(Queues, removed_while_used_only_the_rules_go) {
  Queues q;
  q.set("a", 3, {{"cpu", 1}}, {{"cpu", 5000}});
  q.use("a", {1000, 0, 0}, {}, true);
  q.remove("a");
  Queues rebuilt;
  rebuilt.use("a", {1000, 0, 0}, {}, true);
  EXPECT_TRUE(q == rebuilt);
  EXPECT_FALSE(q.blocks("a", {9000, 0, 0}, {}, false));
}

}  // namespace
}  // namespace muster::scheduler
