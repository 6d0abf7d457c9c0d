#include "queue/engine.h"

#include <gtest/gtest.h>

#include "queue/test_cell.h"

namespace muster::queue {
namespace {

TEST(Engine, AGangRunsToItsEnd) {
  TestCell cell;
  cell.node("a1", 4);
  cell.node("a2", 4);
  const Outcome outcome = cell.submit(test_spec("train", 4, 2));
  ASSERT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(outcome.job, 1u);
  EXPECT_EQ(cell.status(1), "RUNNING");
  for (int rank = 0; rank < 4; ++rank) cell.exit_member("1." + std::to_string(rank), 0);
  EXPECT_EQ(cell.status(1), "SUCCEEDED EXIT 0");
  cell.finish();
}

TEST(Engine, AGangThatDoesNotFitHoldsNothing) {
  TestCell cell;
  cell.node("a1", 4, 8);
  cell.submit(test_spec("big", 2, 1, 8));
  EXPECT_EQ(cell.status(1), "PENDING");
  EXPECT_EQ(cell.engine->state().cluster.find("a1")->used.gpus, 0);
  cell.node("a2", 4, 8);
  EXPECT_EQ(cell.status(1), "RUNNING");
  cell.finish();
}

TEST(Engine, AFailedMemberStopsTheGang) {
  TestCell cell;
  cell.node("a1", 4);
  cell.submit(test_spec("x", 3));
  cell.exit_member("1.1", 3);
  EXPECT_EQ(cell.status(1), "FAILED EXIT 3");
  EXPECT_EQ(cell.engine->state().cluster.find("a1")->used.cpu_milli, 0);
  cell.finish();
}

TEST(Engine, OwnRetriesAreBackedOffAndCounted) {
  TestCell cell;
  cell.node("a1", 4);
  v1::JobSpec spec = test_spec("x");
  spec.mutable_retries()->set_own(1);
  cell.submit(spec);
  cell.exit_member("1.0", 3);
  EXPECT_EQ(cell.status(1), "PENDING");
  cell.pass(3000);
  EXPECT_EQ(cell.status(1), "RUNNING");
  EXPECT_EQ(cell.job(1).attempts(), 2u);
  cell.exit_member("1.0", 4);
  EXPECT_EQ(cell.status(1), "FAILED EXIT 4");
  cell.finish();
}

TEST(Engine, TimeLimitStopsAndIsNotRetried) {
  TestCell cell;
  cell.node("a1", 4);
  v1::JobSpec spec = test_spec("x");
  spec.set_time_limit_ms(10'000);
  spec.mutable_retries()->set_own(5);
  cell.submit(spec);
  cell.pass(8000);
  EXPECT_EQ(cell.status(1), "RUNNING");
  cell.pass(4000);
  EXPECT_EQ(cell.status(1), "FAILED TIME_LIMIT 100");
  cell.finish();
}

TEST(Engine, StartLimitGivesThePlacesBack) {
  TestCell cell;
  cell.node("a1", 4).starts = false;
  v1::JobSpec spec = test_spec("x");
  spec.set_start_limit_ms(5000);
  spec.mutable_retries()->set_start(0);
  cell.submit(spec);
  EXPECT_EQ(cell.status(1), "STARTING");
  cell.pass(7000);
  EXPECT_EQ(cell.status(1), "FAILED START_LIMIT 100");
  cell.finish();
}

TEST(Engine, OneKeyIsOneJobAcrossARestart) {
  TestCell cell;
  const v1::JobSpec spec = test_spec("x");
  EXPECT_EQ(cell.submit(spec, "k").job, 1u);
  cell.crash();
  const Outcome again = cell.submit(spec, "k");
  EXPECT_EQ(again.job, 1u);
  EXPECT_TRUE(again.duplicate);
  const Outcome other = cell.submit(test_spec("y"), "k");
  EXPECT_EQ(other.code, absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(other.message, "key 'k' was used for job 1 with another spec; use a new key for a new job");
  cell.finish();
}

TEST(Engine, AKeyIsForgottenAWeekAfterTheJob) {
  TestCell cell(int64_t{3600} * 1000 * 3);  // a long lease, so that a week passes in few Ticks
  cell.node("a1", 4);
  cell.submit(test_spec("x"), "k");
  cell.exit_member("1.0", 0);
  cell.pass(int64_t{8} * 24 * 3600 * 1000);
  EXPECT_EQ(cell.submit(test_spec("y"), "k").job, 2u);
  cell.finish();
}

TEST(Engine, AGangSurvivesTheServer) {
  TestCell cell;
  cell.node("a1", 4);
  cell.node("a2", 4);
  cell.submit(test_spec("x", 8));
  cell.crash();
  EXPECT_EQ(cell.status(1), "RUNNING");
  EXPECT_EQ(cell.job(1).attempts(), 1u);
  for (int rank = 0; rank < 8; ++rank) cell.exit_member("1." + std::to_string(rank), 0);
  EXPECT_EQ(cell.status(1), "SUCCEEDED EXIT 0");
  cell.finish();
}

TEST(Engine, DependenciesWaitAndFailInAChain) {
  TestCell cell;
  cell.node("a1", 4);
  cell.submit(test_spec("prep"));
  v1::JobSpec spec = test_spec("train");
  spec.mutable_after()->add_ok("prep");
  cell.submit(spec);
  v1::JobSpec last = test_spec("report");
  last.mutable_after()->add_any("2");
  cell.submit(last);
  EXPECT_EQ(cell.status(2), "PENDING");
  cell.exit_member("1.0", 1);
  EXPECT_EQ(cell.status(1), "FAILED EXIT 1");
  EXPECT_EQ(cell.status(2), "FAILED DEPENDENCY 100");
  EXPECT_EQ(cell.status(3), "RUNNING");
  v1::JobSpec late = test_spec("late");
  late.mutable_after()->add_ok("2");
  EXPECT_EQ(cell.submit(late).job, 4u);
  EXPECT_EQ(cell.status(4), "FAILED DEPENDENCY 100");
  late.mutable_after()->set_ok(0, "nobody");
  EXPECT_EQ(cell.submit(late).message, "after.ok: there is no job 'nobody' of user 'ana'");
  cell.finish();
}

TEST(Engine, ArraysRunWithinTheirLimitAndEnd) {
  TestCell cell;
  cell.node("a1", 16);
  v1::JobSpec spec = test_spec("sweep");
  spec.mutable_array()->set_count(5);
  spec.mutable_array()->set_running(2);
  cell.submit(spec);
  EXPECT_EQ(cell.status(1, 1), "RUNNING");
  EXPECT_EQ(cell.status(1, 2), "RUNNING");
  EXPECT_EQ(cell.engine->state().find({1, 3}), nullptr);
  cell.exit_member("1[0].0", 0);
  EXPECT_EQ(cell.status(1, 3), "RUNNING");
  cell.exit_member("1[1].0", 7);
  v1::Record cancel;
  cancel.mutable_cancel_requested()->set_job(1);
  cancel.mutable_cancel_requested()->set_element(5);
  EXPECT_TRUE(cell.ask(cancel).ok());
  cell.exit_member("1[2].0", 0);
  cell.exit_member("1[3].0", 0);
  EXPECT_EQ(cell.status(1), "FAILED EXIT 7");
  EXPECT_EQ(cell.status(1, 5), "CANCELLED BY_USER 103");
  cell.finish();
}

TEST(Engine, CancelHoldRelease) {
  TestCell cell;
  v1::JobSpec spec = test_spec("x");
  spec.set_hold(true);
  cell.submit(spec);
  cell.node("a1", 4);
  EXPECT_EQ(cell.status(1), "PENDING");
  v1::Record release;
  release.mutable_release_requested()->set_job(1);
  EXPECT_TRUE(cell.ask(release).ok());
  EXPECT_EQ(cell.status(1), "RUNNING");
  v1::Record cancel;
  cancel.mutable_cancel_requested()->set_job(1);
  EXPECT_TRUE(cell.ask(cancel).ok());
  EXPECT_EQ(cell.status(1), "CANCELLED BY_USER 103");
  EXPECT_EQ(cell.ask(cancel).message, "job 1 has ended: CANCELLED");
  cancel.mutable_cancel_requested()->set_job(9);
  EXPECT_EQ(cell.ask(cancel).message, "no job 9");
  cell.finish();
}

TEST(Engine, AnUnreachableNodeKeepsItsWorkUntilItIsLost) {
  TestCell cell;
  cell.node("a1", 4);
  cell.submit(test_spec("x"));
  cell.disconnect("a1");
  cell.pass(60'000);
  EXPECT_EQ(cell.status(1), "RUNNING");
  cell.connect("a1");
  EXPECT_EQ(cell.status(1), "RUNNING");
  cell.disconnect("a1");
  cell.pass(310'000);
  EXPECT_EQ(cell.status(1), "PENDING");
  cell.node("a2", 4);
  EXPECT_EQ(cell.status(1), "RUNNING");
  EXPECT_EQ(cell.job(1).attempt().members(0).node(), "a2");
  cell.connect("a1");  // comes back with the old task: it is stopped, and what it says of it is refused
  EXPECT_TRUE(cell.agents.at("a1").running.empty());
  EXPECT_EQ(cell.status(1), "RUNNING");
  cell.finish();
}

TEST(Engine, ARestartedMemberGetsItsNextRun) {
  TestCell cell;
  cell.node("a1", 8);
  v1::JobSpec spec = test_spec("x");
  v1::Task actor = spec.tasks(0);
  spec.mutable_tasks(0)->set_name("learner");
  actor.set_name("actor");
  actor.set_replicas(2);
  actor.set_on_failure(v1::ON_FAILURE_RESTART);
  *spec.add_tasks() = actor;
  spec.set_success("learner");
  cell.submit(spec);
  cell.exit_member("1.2", 1);
  EXPECT_EQ(cell.status(1), "RUNNING");
  EXPECT_FALSE(cell.agents.at("a1").running.contains("1.2"));
  cell.pass(5000);
  EXPECT_TRUE(cell.agents.at("a1").running.contains("1.2"));
  EXPECT_EQ(cell.job(1).attempt().members(2).run(), 2u);
  cell.exit_member("1.0", 0);
  EXPECT_EQ(cell.status(1), "SUCCEEDED EXIT 0");
  cell.finish();
}

TEST(Engine, ADrainedNodeTakesNothingNew) {
  TestCell cell;
  cell.node("a1", 4);
  v1::Record drain;
  drain.mutable_node_set()->set_node("a1");
  drain.mutable_node_set()->set_action(v1::NodeSet::DRAIN);
  EXPECT_TRUE(cell.ask(drain).ok());
  cell.submit(test_spec("x"));
  EXPECT_EQ(cell.status(1), "PENDING");
  drain.mutable_node_set()->set_action(v1::NodeSet::UNDRAIN);
  EXPECT_TRUE(cell.ask(drain).ok());
  EXPECT_EQ(cell.status(1), "RUNNING");
  cell.finish();
}

TEST(Engine, WhatCouldNotBeAppendedIsSaid) {
  TestCell cell;
  cell.drop_appends = true;
  const Outcome outcome = cell.submit(test_spec("x"), "k");
  EXPECT_EQ(outcome.code, absl::StatusCode::kUnavailable);
  EXPECT_EQ(outcome.message, "the log is down; nothing was taken: ask again");
  cell.drop_appends = false;
  EXPECT_TRUE(cell.submit(test_spec("x"), "k").ok());
  cell.finish();
}

TEST(Digest, IsTheSameAsBytesAndAsHex) {
  const StateDigest digest{0x0123456789abcdef, 0xfedcba9876543210};
  EXPECT_EQ(digest.hex(), "fedcba98765432100123456789abcdef");
  EXPECT_EQ(digest.bytes().substr(0, 2), "\xfe\xdc");
  EXPECT_EQ(StateDigest::from_bytes(digest.bytes()), digest);
  EXPECT_EQ(Chain::from_bytes(Chain{1, 2}.bytes()), (Chain{1, 2}));
}

TEST(Engine, ANodeDescribedAnewUnderItsWorkKeepsTheCountsRight) {
  TestCell cell;
  TestCell::Agent& agent = cell.node("a1", 4, 4);
  cell.submit(test_spec("x", 1, 1, 4));
  cell.disconnect("a1");
  agent.description.mutable_devices(0)->set_model("h100");
  agent.description.mutable_devices()->RemoveLast();
  cell.connect("a1");
  EXPECT_EQ(cell.status(1), "RUNNING");
  cell.exit_member("1.0", 0);
  EXPECT_EQ(cell.status(1), "SUCCEEDED EXIT 0");
  cell.finish();
}

TEST(Engine, AServerThatReadsNoTicksLetsItsAgentsGo) {
  TestCell cell;
  cell.node("a1", 4);
  cell.submit(test_spec("x"));
  cell.drop_appends = true;
  cell.pass(20'000);
  EXPECT_NE(cell.engine->stream_of("a1"), 0u);
  cell.pass(12'000);
  EXPECT_EQ(cell.engine->stream_of("a1"), 0u);
  cell.drop_appends = false;
  cell.pass(5000);  // the agent comes back, and its task has run on
  EXPECT_NE(cell.engine->stream_of("a1"), 0u);
  EXPECT_EQ(cell.status(1), "RUNNING");
  cell.finish();
}

TEST(Engine, AStreamThatWentUnsaidIsSaidAtTheNextTick) {
  TestCell cell;
  cell.node("a1", 4);
  cell.drop_appends = true;
  cell.disconnect("a1");
  cell.drop_appends = false;
  EXPECT_FALSE(cell.engine->state().nodes.at("a1").state.unreachable());
  cell.pass(5000);
  EXPECT_TRUE(cell.engine->state().nodes.at("a1").state.unreachable());
  cell.finish();
}

}  // namespace
}  // namespace muster::queue
