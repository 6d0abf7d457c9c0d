#include "scheduler/planner.h"

#include "scheduler/test_world.h"

namespace muster::scheduler {
namespace {

// ---- gangs ----

TEST(Gangs, two_that_want_all_never_hold_half_each) {
  World w;
  w.node({"a", 8, 64, gpus(8, "a100")});
  w.node({"b", 8, 64, gpus(8, "a100")});
  const GangKey first = w.add(Ask(2).gpu(8)), second = w.add(Ask(2).gpu(8));
  EXPECT_EQ(w.run(), 1u);
  EXPECT_EQ(w.where(first), "a:0,1,2,3,4,5,6,7 b:0,1,2,3,4,5,6,7");
  EXPECT_FALSE(w.runs(second));
  w.end(first);
  EXPECT_EQ(w.run(), 1u);
  EXPECT_TRUE(w.runs(second));
}

TEST(Gangs, ranks_follow_the_spec_whatever_was_placed_first) {
  World w;
  w.node({"cpu", 64, 64, {}});
  w.node({"gpu", 8, 64, gpus(8, "a100")});
  const GangKey key = w.add(Ask(3).named("actor").cpu(4).task(1, "learner").gpu(8));
  EXPECT_EQ(w.run(), 1u);
  EXPECT_EQ(w.where(key), "cpu cpu cpu gpu:0,1,2,3,4,5,6,7");
}

TEST(Gangs, the_demanding_task_gets_the_node_that_only_it_needs) {
  World w;
  w.node({"big", 8, 64, {}});
  w.node({"small", 2, 64, {}});
  const GangKey key = w.add(Ask(2).named("little").cpu(1).task(1, "large").cpu(8));
  EXPECT_EQ(w.run(), 1u);
  EXPECT_EQ(w.where(key), "small small big");
}

TEST(Gangs, a_gang_that_half_fits_holds_nothing) {
  World w;
  w.node({"a", 4, 64, {}});
  const GangKey large = w.add(Ask(5)), behind = w.add(Ask(4));
  EXPECT_EQ(w.run(), 1u);
  EXPECT_FALSE(w.runs(large));
  EXPECT_TRUE(w.runs(behind));
}

// ---- where members go ----

TEST(Fit, small_requests_fill_broken_nodes_and_whole_nodes_stay_whole) {
  World w;
  for (const char* name : {"a", "b", "c"}) w.node({name, 64, 64, gpus(8, "a100")});
  const GangKey first = w.add(Ask().gpu(2)), second = w.add(Ask().gpu(4)), third = w.add(Ask(2).gpu(8));
  EXPECT_EQ(w.run(), 3u);
  EXPECT_EQ(w.where(first), "a:0,1");
  EXPECT_EQ(w.where(second), "a:2,3,4,5");
  EXPECT_EQ(w.where(third), "b:0,1,2,3,4,5,6,7 c:0,1,2,3,4,5,6,7");
}

TEST(Fit, the_node_with_the_least_left_over_then_the_least_cpu_then_the_name) {
  World w;
  w.node({"c", 8, 64, gpus(4, "t4")});
  w.node({"b", 8, 64, gpus(4, "t4")});
  w.node({"a", 9, 64, gpus(4, "t4")});
  w.node({"d", 8, 64, gpus(2, "t4")});
  const GangKey two = w.add(Ask().gpu(2)), four = w.add(Ask().gpu(4));
  w.run();
  EXPECT_EQ(w.where(two), "d:0,1");
  EXPECT_EQ(w.where(four), "b:0,1,2,3");
}

TEST(Fit, members_without_gpus_stay_off_nodes_with_gpus) {
  World w;
  w.node({"gpu", 2, 64, gpus(1, "t4")});
  w.node({"plain", 64, 64, {}});
  const GangKey key = w.add(Ask().cpu(2));
  w.run();
  EXPECT_EQ(w.where(key), "plain");
}

TEST(Fit, one_member_has_devices_of_one_model_where_it_can) {
  World w;
  w.node({"a", 8, 64, {"t4", "a100", "t4", "a100", "a100"}});
  const GangKey two = w.add(Ask().gpu(2));
  w.run();
  EXPECT_EQ(w.where(two), "a:0,2");
  const GangKey three = w.add(Ask().gpu(3).model("a100"));
  w.run();
  EXPECT_EQ(w.where(three), "a:1,3,4");
}

TEST(Fit, models_are_mixed_rather_than_wait) {
  World w;
  w.node({"a", 8, 64, {"t4", "a100", "t4"}});
  const GangKey key = w.add(Ask().gpu(3));
  w.run();
  EXPECT_EQ(w.where(key), "a:0,1,2");
}

TEST(Fit, only_the_named_models) {
  World w;
  w.node({"a", 8, 64, gpus(2, "t4")});
  w.node({"b", 8, 64, gpus(2, "a100")});
  w.node({"c", 8, 64, gpus(2, "h100")});
  const GangKey key = w.add(Ask(2).gpu(2).model("h100").model("a100"));
  w.run();
  EXPECT_EQ(w.where(key), "b:0,1 c:0,1");
}

TEST(Fit, labels_required_excluded_and_preferred) {
  World w;
  w.node({"a", 8, 64, {}, {{"zone", "1a"}, {"disk", "hdd"}}});
  w.node({"b", 8, 64, {}, {{"zone", "1b"}, {"disk", "ssd"}}});
  w.node({"c", 8, 64, {}, {{"zone", "1b"}, {"disk", "hdd"}}});
  w.node({"d", 8, 64, {}, {}});
  const GangKey required = w.add(Ask().cpu(8).require("zone", {"1b", "1c"}).exclude("disk", {"ssd"}));
  w.run();
  EXPECT_EQ(w.where(required), "c");
  const GangKey preferred = w.add(Ask(2).cpu(8).prefer("disk", {"ssd"}));
  w.run();
  EXPECT_EQ(w.where(preferred), "b a");
}

TEST(Fit, per_node) {
  World w;
  w.node({"a", 8, 64, {}});
  w.node({"b", 8, 64, {}});
  const GangKey key = w.add(Ask(4).per_node(2)), too_many = w.add(Ask(5).per_node(2));
  w.run();
  EXPECT_EQ(w.where(key), "a a b b");
  EXPECT_FALSE(w.runs(too_many));
}

// ---- pack ----

void racks(World& w) {
  w.node({"a", 8, 64, {}, {{"rack", "r1"}}});
  w.node({"b", 8, 64, {}, {{"rack", "r1"}}});
  w.node({"c", 8, 64, {}, {{"rack", "r2"}}});
  w.node({"d", 64, 64, {}, {}});
}

TEST(Pack, all_members_under_one_value_and_the_fullest_that_fits) {
  World w;
  racks(w);
  const GangKey small = w.add(Ask(2).cpu(4).pack("rack"));
  w.run();
  EXPECT_EQ(w.where(small), "c c");
  const GangKey large = w.add(Ask(4).cpu(4).pack("rack"));
  w.run();
  EXPECT_EQ(w.where(large), "a a b b");
}

TEST(Pack, hard_waits_although_the_nodes_together_would_do) {
  World w;
  racks(w);
  const GangKey key = w.add(Ask(5).cpu(4).pack("rack"));
  EXPECT_EQ(w.run(), 0u);
  EXPECT_EQ(w.planner.reason(key), ReasonCode::kNeverFits);
}

TEST(Pack, soft_spreads_when_no_domain_is_large_enough) {
  World w;
  racks(w);
  const GangKey key = w.add(Ask(5).cpu(4).pack("rack", true));
  EXPECT_EQ(w.run(), 1u);
  EXPECT_EQ(w.where(key), "a a b b c");
}

TEST(Pack, soft_takes_few_domains) {
  World w;
  for (const char* name : {"a1", "b1", "c1", "c2", "c3"})
    w.node({name, 8, 64, {}, {{"rack", std::string(1, name[0])}}});
  w.node({"0", 8, 64, {}, {}});
  const GangKey key = w.add(Ask(4).cpu(8).pack("rack", true));
  EXPECT_EQ(w.run(), 1u);
  EXPECT_EQ(w.where(key), "c1 c2 c3 a1");
}

TEST(Pack, tasks_that_are_not_packed_go_anywhere) {
  World w;
  racks(w);
  const GangKey key = w.add(Ask(2).cpu(8).pack("rack").task(8, "actor").cpu(8).unpacked());
  EXPECT_EQ(w.run(), 1u);
  EXPECT_EQ(w.where(key).substr(0, 3), "a b");
}

// ---- order ----

TEST(Order, priority_then_line_over_all_queues) {
  World w;
  w.node({"a", 2, 64, {}});
  const GangKey low = w.add(Ask().cpu(1).priority(-1)), first = w.add(Ask().cpu(1).queue("x")),
                second = w.add(Ask().cpu(1).queue("y")), high = w.add(Ask().cpu(1).priority(5));
  const Round round = w.plan();
  ASSERT_EQ(round.placements.size(), 2u);
  EXPECT_EQ(round.placements[0].key, high);
  EXPECT_EQ(round.placements[1].key, first);
  w.fold(round);
  w.end(high);
  w.run();
  EXPECT_TRUE(w.runs(second));
  EXPECT_FALSE(w.runs(low));
}

TEST(Order, gangs_behind_a_stuck_one_start_if_they_fit_elsewhere) {
  World w;
  w.node({"a", 8, 64, gpus(2, "t4")});
  for (int i = 0; i < 1000; ++i) w.add(Ask().gpu(4));
  const GangKey behind = w.add(Ask().gpu(1));
  const Round round = w.plan();
  ASSERT_EQ(round.placements.size(), 1u);
  EXPECT_EQ(round.placements[0].key, behind);
  EXPECT_EQ(round.shapes_tried, 2u);
}

TEST(Order, a_failed_shape_is_passed_over_until_something_is_freed) {
  World w;
  w.node({"a", 8, 64, {}});
  const GangKey running = w.add(Ask().cpu(8));
  w.run();
  const GangKey stuck = w.add(Ask().cpu(4));
  EXPECT_TRUE(w.due());
  EXPECT_EQ(w.plan().shapes_tried, 1u);
  EXPECT_FALSE(w.due());
  w.add(Ask().cpu(4));
  EXPECT_FALSE(w.due()) << "another of a shape that failed";
  EXPECT_EQ(w.plan().steps, 0u);
  w.end(running);
  EXPECT_TRUE(w.due());
  EXPECT_EQ(w.run(), 2u);
  EXPECT_TRUE(w.runs(stuck));
}

TEST(Order, a_joined_or_undrained_node_reopens) {
  World w;
  w.node({"a", 2, 64, {}});
  w.cluster.set_schedulable("a", false, true);
  const GangKey key = w.add(Ask().cpu(1)), large = w.add(Ask().cpu(4));
  EXPECT_EQ(w.run(), 0u);
  EXPECT_EQ(w.planner.reason(key), ReasonCode::kNoCapacity);
  EXPECT_EQ(w.planner.reason(large), ReasonCode::kNeverFits);
  w.cluster.set_schedulable("a", true);
  EXPECT_EQ(w.run(), 1u);
  w.node({"b", 4, 64, {}});
  EXPECT_EQ(w.run(), 1u);
  EXPECT_TRUE(w.runs(large));
}

// What failed only because of a decision that then came to nothing is tried again, although nothing was
// freed.
TEST(Order, a_decision_that_is_not_folded_reopens_what_failed_beside_it) {
  World w;
  w.node({"a", 8, 64, {}});
  const GangKey first = w.add(Ask().cpu(8)), second = w.add(Ask().cpu(4));
  ASSERT_EQ(w.plan().placements.size(), 1u);
  w.cancel(first);
  EXPECT_TRUE(w.due());
  EXPECT_EQ(w.run(), 1u);
  EXPECT_TRUE(w.runs(second));
}

TEST(Order, once_folded_nothing_is_due) {
  World w;
  w.node({"a", 8, 64, {}});
  w.add(Ask().cpu(8));
  w.add(Ask().cpu(4));
  w.fold(w.plan());
  EXPECT_FALSE(w.due());
}

// ---- arrays, back-off, limits ----

TEST(Arrays, element_after_element_until_one_does_not_fit) {
  World w;
  w.node({"a", 8, 64, {}});
  const GangKey array = w.add(Ask().cpu(3), 100);
  EXPECT_EQ(w.run(), 2u);
  w.end(array);
  EXPECT_EQ(w.run(), 1u);
  EXPECT_EQ(w.waiting().at(array).copies, 97u);
}

TEST(Arrays, the_lower_line_first_all_its_elements) {
  World w;
  w.node({"a", 4, 64, {}});
  const GangKey array = w.add(Ask().cpu(1), 3);
  const GangKey job = w.add(Ask().cpu(1)), late = w.add(Ask().cpu(1));
  EXPECT_EQ(w.run(), 4u);
  EXPECT_EQ(w.waiting().count(array), 0u);
  EXPECT_TRUE(w.runs(job));
  EXPECT_FALSE(w.runs(late));
}

TEST(BackOff, waits_outside_its_shape_and_tells_when_to_wake) {
  World w;
  w.node({"a", 1, 64, {}});
  w.now_ms = 1000;
  const GangKey early = w.add(Ask().cpu(1), 1, 5000), late = w.add(Ask().cpu(1));
  const Round round = w.plan();
  ASSERT_EQ(round.placements.size(), 1u);
  EXPECT_EQ(round.placements[0].key, late);
  EXPECT_EQ(round.wake_at_ms, 5000);
  EXPECT_EQ(w.planner.reason(early), ReasonCode::kBackOff);
  w.fold(round);
  w.end(late);
  EXPECT_EQ(w.run(), 0u);
  w.now_ms = 4999;
  EXPECT_FALSE(w.due());
  w.now_ms = 5000;
  EXPECT_TRUE(w.due());
  EXPECT_EQ(w.run(), 1u);
  EXPECT_TRUE(w.runs(early));
}

TEST(Limits, a_round_stops_and_says_that_there_is_more) {
  World w;
  w.node({"a", 64, 64, {}});
  for (int i = 0; i < 10; ++i) w.add(Ask(2).cpu(1));
  w.limits.decisions = 3;
  Round round = w.plan();
  EXPECT_EQ(round.placements.size(), 3u);
  EXPECT_TRUE(round.more);
  w.fold(round);
  EXPECT_TRUE(w.due());
  w.limits = RoundLimits{};
  w.limits.members = 5;
  round = w.plan();
  EXPECT_EQ(round.placements.size(), 2u);
  EXPECT_TRUE(round.more);
  w.fold(round);
  w.limits = RoundLimits{};
  round = w.plan();
  EXPECT_EQ(round.placements.size(), 5u);
  EXPECT_FALSE(round.more);
}

TEST(Limits, out_of_steps_goes_on_with_the_next_shape) {
  World w;
  w.node({"a", 1, 64, {}});
  for (int i = 0; i < 5; ++i) w.add(Ask().cpu(2 + i));
  const GangKey fits = w.add(Ask().cpu(1));
  w.limits.steps = 1;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(w.plan().more);
  w.fold(w.plan());
  EXPECT_TRUE(w.runs(fits));
}

// ---- queues ----

TEST(Quotas, a_limit_counts_the_rounds_own_placements) {
  World w;
  w.node({"a", 64, 64, gpus(8, "a100")});
  w.queues.set("vision", 1, {}, {{"gpu", 4000}});
  const GangKey first = w.add(Ask().gpu(3).queue("vision")), second = w.add(Ask().gpu(2).queue("vision/x")),
                other = w.add(Ask().gpu(4));
  EXPECT_EQ(w.run(), 2u);
  EXPECT_TRUE(w.runs(first));
  EXPECT_TRUE(w.runs(other));
  EXPECT_EQ(w.planner.reason(second), ReasonCode::kQueueLimit);
  w.end(first);
  EXPECT_EQ(w.run(), 1u);
  EXPECT_TRUE(w.runs(second));
}

TEST(Quotas, only_preemptible_work_goes_beyond_quota) {
  World w;
  w.node({"a", 64, 64, {}});
  w.queues.set("q", 1, {{"cpu", 4000}}, {});
  const GangKey within = w.add(Ask().cpu(3).queue("q")), beyond = w.add(Ask().cpu(2).queue("q")),
                loose = w.add(Ask().cpu(2).queue("q").preemptible()), large = w.add(Ask().cpu(5).queue("q"));
  EXPECT_EQ(w.run(), 2u);
  EXPECT_TRUE(w.runs(within));
  EXPECT_TRUE(w.runs(loose));
  EXPECT_EQ(w.planner.reason(beyond), ReasonCode::kQueueLimit);
  EXPECT_EQ(w.planner.reason(large), ReasonCode::kNeverQueue);
  w.queues.set("q", 1, {{"cpu", 8000}}, {});
  EXPECT_EQ(w.run(), 1u);
}

TEST(Quotas, a_model_that_is_used_up_is_avoided_for_another) {
  World w;
  w.node({"a", 64, 64, gpus(4, "a100")});
  w.node({"t", 64, 64, gpus(8, "t4")});
  w.queues.set("q", 1, {}, {{"gpu.a100", 2000}});
  const GangKey two = w.add(Ask().gpu(2).queue("q")), more = w.add(Ask().gpu(2).queue("q")),
                stuck = w.add(Ask().gpu(2).queue("q").model("a100"));
  w.run();
  EXPECT_EQ(w.where(two), "a:0,1");
  EXPECT_EQ(w.where(more), "t:0,1");
  EXPECT_EQ(w.planner.reason(stuck), ReasonCode::kQueueLimit);
  w.end(two);
  EXPECT_EQ(w.run(), 1u);
}

// ---- reasons, changes ----

TEST(Reasons, a_shape_keeps_one_until_looked_at_again) {
  World w;
  const GangKey key = w.add(Ask().gpu(2));
  EXPECT_EQ(w.planner.reason(key), ReasonCode::kNotTried);
  w.plan();
  EXPECT_EQ(w.planner.reason(key), ReasonCode::kNoCapacity) << "no node has joined: anything may come";
  w.node({"a", 8, 64, {}});
  w.plan();
  EXPECT_EQ(w.planner.reason(key), ReasonCode::kNeverFits);
  w.node({"b", 8, 64, gpus(2, "t4")});
  const GangKey other = w.add(Ask().gpu(1));
  EXPECT_EQ(w.run(), 1u);
  EXPECT_TRUE(w.runs(key));
  EXPECT_EQ(w.planner.reason(other), ReasonCode::kNoCapacity);
  w.cluster.remove("b");
  w.plan();
  EXPECT_EQ(w.planner.reason(other), ReasonCode::kNeverFits) << "the node with GPUs is gone";
}

TEST(Changes, add_again_moves_a_gang_to_its_new_shape) {
  World w;
  const GangKey key = w.add(Ask().cpu(1).priority(1));
  w.planner.add({key, Ask().cpu(2).shape(), 7, 0, 1});
  EXPECT_EQ(w.planner.pending(), 1u);
  w.planner.add({key, Ask().cpu(2).shape(), 7, 99, 1});
  EXPECT_EQ(w.planner.pending(), 1u);
  w.planner.remove(key);
  EXPECT_EQ(w.planner.pending(), 0u);
  EXPECT_FALSE(w.planner.waits(key));
  EXPECT_FALSE(w.due());
}

}  // namespace
}  // namespace muster::scheduler
