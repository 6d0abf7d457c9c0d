// A real agent and real tasks against a scripted server: what is reported, what a stop ends, what survives
// whose death.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "agent/files.h"
#include "agent/test_agent.h"

namespace muster::agent {
namespace {

using Reports = std::vector<v1::AgentMessage>;

class AgentSession : public ::testing::Test {
 protected:
  AgentSession() : agent_({server_.address()}, {"output_bytes_max=100000", "done_members_max=3"}) {}
  void SetUp() override {
    agent_.start();
    ASSERT_TRUE(server_.wait_sessions(1));
  }
  void TearDown() override { EXPECT_TRUE(agent_.wait_nothing_left()) << "processes are left over"; }

  // Prepares and starts it.
  void launch(const v1::PrepareOrder& order) {
    ASSERT_TRUE(server_.send(prepare(order)));
    ASSERT_TRUE(wait_count(v1::AgentMessage::kPrepared, order.member(), 1));
    ASSERT_TRUE(server_.send(start(TestAgent::start_order(order.member()))));
  }
  bool wait_count(v1::AgentMessage::WhatCase kind, const v1::MemberRef& member, int count) {
    return server_.wait_reports([&](const Reports& r) { return count_of(r, kind, member) >= count; });
  }
  v1::Exited wait_end(const v1::MemberRef& member, uint32_t run = 0) {
    v1::Exited out;
    EXPECT_TRUE(server_.wait_reports([&](const Reports& reports) {
      const v1::Exited* found = exited_of(reports, member, run);
      if (found != nullptr) out = *found;
      return found != nullptr;
    }));
    return out;
  }
  v1::Exited run(const v1::PrepareOrder& order) {
    launch(order);
    return wait_end(order.member());
  }
  int count(v1::AgentMessage::WhatCase kind, const v1::MemberRef& member) {
    return count_of(server_.reports(), kind, member);
  }
  // Waits until the file is there with something in it, and returns that.
  static std::string wait_file(const std::string& path) {
    for (int i = 0; i < 600; ++i) {
      if (absl::StatusOr<std::string> text = read_file(path); text.ok() && !text->empty()) return *text;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ADD_FAILURE() << path << " did not come";
    return "";
  }
  std::string task_file(const v1::PrepareOrder& order, const std::string& name) {
    return absl::StrCat(agent_.dir(), "/tasks/", order.member().job(), ".0.1.0/", name);
  }
  std::string read_output(const v1::MemberRef& member, uint64_t request, bool follow) {
    v1::ServerMessage message;
    message.mutable_read_output()->set_request(request);
    *message.mutable_read_output()->mutable_member() = member;
    message.mutable_read_output()->set_follow(follow);
    EXPECT_TRUE(server_.send(message));
    EXPECT_TRUE(server_.wait_output_end(request));
    bool ended = false;
    return server_.output(request, &ended);
  }

  FakeServer server_;
  TestAgent agent_;
};

TEST_F(AgentSession, RunsAndReportsEachStepOnce) {
  const v1::PrepareOrder order = agent_.order(1, "exit 0");
  const v1::Exited exited = run(order);
  EXPECT_EQ(exited.code(), 0);
  EXPECT_EQ(exited.signal(), 0);
  EXPECT_EQ(exited.run(), 1u);
  EXPECT_FALSE(exited.never_started());
  EXPECT_EQ(count(v1::AgentMessage::kStarted, order.member()), 1);
  const v1::Prepared prepared = server_.reports().front().prepared();
  EXPECT_EQ(prepared.address(), "127.0.0.1");
  EXPECT_GE(prepared.port(), 20'000u);
}

TEST_F(AgentSession, ReportsCodesAndSignals) {
  EXPECT_EQ(run(agent_.order(1, "exit 7")).code(), 7);
  EXPECT_EQ(run(agent_.order(2, "kill -SEGV $$")).signal(), SIGSEGV);
  v1::PrepareOrder missing = agent_.order(3, "");
  missing.mutable_task()->clear_command();
  missing.mutable_task()->add_command("no-such-program");
  const v1::Exited exited = run(missing);
  EXPECT_EQ(exited.code(), 127);
  EXPECT_EQ(exited.message(), "cannot run no-such-program: No such file or directory");
  missing = agent_.order(4, "");
  missing.mutable_task()->set_command(0, "/etc/passwd");
  EXPECT_EQ(run(missing).code(), 126);
}

TEST_F(AgentSession, StopIsSignalThenGrace) {
  const v1::PrepareOrder order =
      agent_.order(1, "trap 'echo got it; exit 9' TERM; echo ready; while :; do sleep 0.05; done");
  launch(order);
  wait_file(task_file(order, "output.log"));
  server_.send(stop(order.member(), 30'000));
  EXPECT_EQ(wait_end(order.member()).code(), 9);
  // The shell may also tell of its own child's end.
  EXPECT_THAT(read_output(order.member(), 1, false), ::testing::EndsWith("got it\n"));
}

TEST_F(AgentSession, StubbornGroupAndEscapedGrandchildAreKilled) {
  // All ignore TERM; one has left the process group and the session, one is an orphan.
  const v1::PrepareOrder order = agent_.order(
      1,
      "trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' & (sleep 1000 &) ; "
      "echo ready; while :; do sleep 1; done");
  launch(order);
  wait_file(task_file(order, "output.log"));
  server_.send(stop(order.member(), 200));
  EXPECT_EQ(wait_end(order.member()).signal(), SIGKILL);
  EXPECT_TRUE(agent_.left_over().size() <= 1) << "only the supervisor may still be leaving";
}

TEST_F(AgentSession, WhatTheMainProcessLeavesBehindEndsWithIt) {
  const v1::PrepareOrder order = agent_.order(1, "setsid sleep 1000 & sleep 1000 & echo left; exit 3");
  EXPECT_EQ(run(order).code(), 3);
  EXPECT_TRUE(agent_.wait_nothing_left());
}

TEST_F(AgentSession, TheSameOrderTwiceDoesNothingTwice) {
  const v1::PrepareOrder order =
      agent_.order(1, absl::StrCat("echo run >> ", agent_.dir(), "/runs; sleep 0.3"));
  server_.set_acknowledges(false);  // the reports stay under way
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(server_.send(prepare(order)));
  ASSERT_TRUE(wait_count(v1::AgentMessage::kPrepared, order.member(), 1));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(server_.send(start(TestAgent::start_order(order.member()))));
  wait_end(order.member());
  ASSERT_TRUE(server_.send(prepare(order)));
  ASSERT_TRUE(server_.send(start(TestAgent::start_order(order.member()))));
  ASSERT_TRUE(server_.send(stop(order.member(), 0)));
  // Something after it, so that all of those have been taken.
  const v1::PrepareOrder other = agent_.order(2, "true");
  run(other);
  EXPECT_EQ(count(v1::AgentMessage::kPrepared, order.member()), 1);
  EXPECT_EQ(count(v1::AgentMessage::kStarted, order.member()), 1);
  EXPECT_EQ(count(v1::AgentMessage::kExited, order.member()), 1);
  EXPECT_EQ(read_file(agent_.dir() + "/runs").value_or(""), "run\n");
}

TEST_F(AgentSession, StopOfWhatNeverRanAndOfWhatIsUnknown) {
  const v1::PrepareOrder order = agent_.order(1, "true");
  server_.send(prepare(order));
  ASSERT_TRUE(wait_count(v1::AgentMessage::kPrepared, order.member(), 1));
  server_.send(stop(order.member(), 0));
  EXPECT_TRUE(wait_end(order.member()).never_started());
  // Over is over: a late start runs nothing.
  server_.send(start(TestAgent::start_order(order.member())));
  const v1::PrepareOrder unknown = agent_.order(2, "true");
  server_.send(stop(unknown.member(), 0));
  EXPECT_TRUE(wait_end(unknown.member()).never_started());
  const v1::PrepareOrder lost = agent_.order(3, "true");
  server_.send(start(TestAgent::start_order(lost.member())));
  const v1::Exited exited = wait_end(lost.member());
  EXPECT_TRUE(exited.never_started());
  EXPECT_EQ(exited.message(), "its files are not on this node");
  EXPECT_EQ(count(v1::AgentMessage::kStarted, order.member()), 0);
}

TEST_F(AgentSession, ARestartedMemberIsItsNextRun) {
  v1::PrepareOrder order = agent_.order(1, absl::StrCat("echo run >> ", agent_.dir(), "/runs; exit 5"));
  EXPECT_EQ(run(order).run(), 1u);
  server_.send(start(TestAgent::start_order(order.member(), 2)));
  EXPECT_EQ(wait_end(order.member(), 2).code(), 5);
  EXPECT_EQ(read_file(agent_.dir() + "/runs").value_or(""), "run\nrun\n");
}

TEST_F(AgentSession, ANewerAttemptEndsTheOlderFirst) {
  const v1::PrepareOrder older = agent_.order(1, "trap '' TERM; echo up; while :; do sleep 1; done");
  launch(older);
  wait_file(task_file(older, "output.log"));
  v1::PrepareOrder newer = agent_.order(1, "true");
  newer.mutable_member()->set_attempt(2);
  newer.mutable_member()->mutable_fence()->set_position(500);
  server_.send(prepare(newer));
  ASSERT_TRUE(wait_count(v1::AgentMessage::kPrepared, newer.member(), 1));
  // In this order: the older's end, then the newer's readiness.
  std::vector<std::string> order;
  for (const v1::AgentMessage& report : server_.reports()) {
    if (report.has_exited()) order.push_back(absl::StrCat("exited ", report.exited().member().attempt()));
    if (report.has_prepared())
      order.push_back(absl::StrCat("prepared ", report.prepared().member().attempt()));
  }
  EXPECT_EQ(order, (std::vector<std::string>{"prepared 1", "exited 1", "prepared 2"}));
  // And what is older than that is refused.
  v1::PrepareOrder stale = agent_.order(1, "true");
  stale.mutable_member()->set_attempt(3);
  stale.mutable_member()->mutable_fence()->set_position(200);
  server_.send(prepare(stale));
  ASSERT_TRUE(wait_count(v1::AgentMessage::kPrepareFailed, stale.member(), 1));
  server_.send(stop(newer.member(), 0));
  wait_end(newer.member());
}

TEST_F(AgentSession, OutputIsFollowedToItsEndAndKeptUpToItsLimit) {
  const v1::PrepareOrder order = agent_.order(1, "for i in 1 2 3; do echo $i; sleep 0.2; done");
  launch(order);
  EXPECT_EQ(read_output(order.member(), 1, true), "1\n2\n3\n");
  const v1::PrepareOrder much = agent_.order(2, "head -c 300000 /dev/zero; exit 4");
  const v1::Exited exited = run(much);
  EXPECT_EQ(exited.code(), 4) << "a task never blocks on its output";
  const std::string kept = read_output(much.member(), 2, false);
  EXPECT_EQ(static_cast<int64_t>(kept.size()), exited.output_bytes());
  EXPECT_EQ(kept.substr(100'000), "\nmuster: output is kept up to 100000 bytes; the rest is dropped\n");
}

TEST_F(AgentSession, ForgottenOutputIsKeptForTheLastMembersOnly) {
  std::vector<v1::PrepareOrder> orders;
  for (uint64_t job = 1; job <= 5; ++job) {
    orders.push_back(agent_.order(job, absl::StrCat("echo ", job)));
    run(orders.back());
    server_.send(forget(orders.back().member()));
  }
  EXPECT_EQ(read_output(orders[4].member(), 5, false), "5\n");
  EXPECT_EQ(read_output(orders[2].member(), 3, false), "3\n");
  for (int i = 0;
       i < 600 && std::filesystem::exists(absl::StrCat(agent_.dir(), "/done/2.0.1.0-000000000000abc2")); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(read_output(orders[1].member(), 2, false), "");
}

TEST_F(AgentSession, MembersSeeTheirEnvironment) {
  v1::PrepareOrder order = agent_.order(12, "");
  order.mutable_task()->clear_command();
  order.mutable_task()->set_script(
      "echo $MUSTER_JOB_ID $RANK/$WORLD_SIZE $MASTER_ADDR \"[$CUDA_VISIBLE_DEVICES]\"\npwd");
  const v1::Exited exited = run(order);
  EXPECT_EQ(exited.code(), 0);
  EXPECT_EQ(read_output(order.member(), 1, false),
            absl::StrCat("12 0/1 127.0.0.1 []\n", agent_.dir(), "/tasks/12.0.1.0/work\n"));
}

TEST_F(AgentSession, AMissingWorkdirIsTheJobsFault) {
  v1::PrepareOrder order = agent_.order(1, "true");
  order.set_workdir("/nowhere/at/all");
  server_.send(prepare(order));
  ASSERT_TRUE(wait_count(v1::AgentMessage::kPrepareFailed, order.member(), 1));
  const v1::PrepareFailed failed = server_.reports().back().prepare_failed();
  EXPECT_TRUE(failed.own());
  EXPECT_EQ(failed.message(),
            absl::StrCat("workdir: /nowhere/at/all is no directory on node ", agent_.marker()));
}

}  // namespace
}  // namespace muster::agent

int main(int argc, char** argv) {
  if (const int code = muster::agent::agent_main_if_asked(argc, argv); code >= 0) return code;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
