// What is killed, cut off or damaged, and what the agent makes of it: nothing runs twice, nothing is lost,
// nothing stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/agent.h"
#include "agent/files.h"
#include "agent/task_dir.h"
#include "agent/test_agent.h"

namespace muster::agent {
namespace {

using Reports = std::vector<v1::AgentMessage>;

class AgentCrash : public ::testing::Test {
 protected:
  AgentCrash() : agent_({server_.address()}) {}
  void TearDown() override { EXPECT_TRUE(agent_.wait_nothing_left()) << "processes are left over"; }

  void begin() {
    agent_.start();
    ASSERT_TRUE(server_.wait_sessions(++sessions_));
  }
  void launch(const v1::PrepareOrder& order) {
    ASSERT_TRUE(server_.send(prepare(order)));
    ASSERT_TRUE(wait_count(v1::AgentMessage::kPrepared, order.member(), 1));
    ASSERT_TRUE(server_.send(start(TestAgent::start_order(order.member()))));
    ASSERT_TRUE(wait_count(v1::AgentMessage::kStarted, order.member(), 1));
  }
  bool wait_count(v1::AgentMessage::WhatCase kind, const v1::MemberRef& member, int count) {
    return server_.wait_reports([&](const Reports& r) { return count_of(r, kind, member) >= count; });
  }
  v1::Exited wait_end(const v1::MemberRef& member) {
    v1::Exited out;
    EXPECT_TRUE(server_.wait_reports([&](const Reports& reports) {
      const v1::Exited* found = exited_of(reports, member);
      if (found != nullptr) out = *found;
      return found != nullptr;
    }));
    return out;
  }
  TaskDir dir_of(const v1::PrepareOrder& order) const {
    return TaskDir(absl::StrCat(agent_.dir(), "/tasks/", order.member().job(), ".0.1.0"));
  }
  static bool wait_for(const std::function<bool()>& condition) {
    for (int i = 0; i < 600; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }
  // A task that appends a line to `runs` when it begins, and ends with code 6 once the file `go` is there.
  v1::PrepareOrder waiting_task(uint64_t job) const {
    return agent_.order(job, absl::StrCat("cd ", agent_.dir(), "; echo $MUSTER_JOB_ID >> runs; ",
                                          "while [ ! -e go ]; do sleep 0.1; done; exit 6"));
  }
  void let_go() const { std::ofstream(agent_.dir() + "/go") << "go"; }
  std::string runs() const { return read_file(agent_.dir() + "/runs").value_or(""); }

  FakeServer server_;
  TestAgent agent_;
  size_t sessions_ = 0;
};

TEST_F(AgentCrash, AKilledAgentsTasksAreAdopted) {
  begin();
  const v1::PrepareOrder order = waiting_task(1);
  launch(order);
  agent_.kill();
  begin();
  ASSERT_EQ(server_.hellos().back().tasks_size(), 1);
  // As the server does when it has not yet folded what was reported.
  server_.send(prepare(order));
  server_.send(start(TestAgent::start_order(order.member())));
  let_go();
  EXPECT_EQ(wait_end(order.member()).code(), 6);
  EXPECT_EQ(runs(), "1\n");
  EXPECT_EQ(server_.hellos().front().incarnation(), server_.hellos().back().incarnation());
}

TEST_F(AgentCrash, AnEndWithoutAnAgentIsReportedByTheNext) {
  begin();
  const v1::PrepareOrder order = waiting_task(1);
  launch(order);
  agent_.kill();
  let_go();
  ASSERT_TRUE(wait_for([&] {
    const absl::StatusOr<TaskRecord> record = dir_of(order).read();
    return record.ok() && record->end.has_value();
  }));
  begin();
  EXPECT_EQ(wait_end(order.member()).code(), 6);
  EXPECT_EQ(runs(), "1\n");
  // Told once, it is not told again.
  agent_.kill();
  begin();
  const v1::PrepareOrder other = agent_.order(2, "true");
  launch(other);
  wait_end(other.member());
  EXPECT_EQ(count_of(server_.reports(), v1::AgentMessage::kExited, order.member()), 1);
}

TEST_F(AgentCrash, PreparedStaysPrepared) {
  begin();
  const v1::PrepareOrder order = agent_.order(1, "exit 4");
  server_.send(prepare(order));
  ASSERT_TRUE(wait_count(v1::AgentMessage::kPrepared, order.member(), 1));
  agent_.kill();
  begin();
  server_.send(start(TestAgent::start_order(order.member())));
  EXPECT_EQ(wait_end(order.member()).code(), 4);
}

TEST_F(AgentCrash, AKilledSupervisorTakesItsTaskWithItAndItIsNotRunAgain) {
  begin();
  v1::PrepareOrder order = agent_.order(
      1, absl::StrCat("cd ", agent_.dir(),
                      "; (trap '' TERM HUP; exec setsid sleep 1000) & echo 1 >> runs; sleep 1000"));
  launch(order);
  ASSERT_TRUE(wait_for([&] { return runs() == "1\n"; }));
  kill(dir_of(order).read()->supervisor->pid, SIGKILL);
  const v1::Exited exited = wait_end(order.member());
  EXPECT_TRUE(exited.supervisor_lost());
  EXPECT_TRUE(agent_.left_over().empty()) << "what it had left was ended before that was said";
  server_.send(start(TestAgent::start_order(order.member())));
  const v1::PrepareOrder other = agent_.order(2, "true");
  launch(other);
  wait_end(other.member());
  EXPECT_EQ(runs(), "1\n");
}

TEST_F(AgentCrash, AgentAndSupervisorKilledTogether) {
  begin();
  v1::PrepareOrder order = agent_.order(1, "setsid sleep 1000 & sleep 1000");
  launch(order);
  ASSERT_TRUE(wait_for([&] { return agent_.left_over().size() >= 3; }));
  agent_.kill();
  kill(dir_of(order).read()->supervisor->pid, SIGKILL);
  begin();
  EXPECT_TRUE(wait_end(order.member()).supervisor_lost());
  EXPECT_TRUE(agent_.left_over().empty());
}

TEST_F(AgentCrash, ReportsAreKeptUntilAcknowledged) {
  server_.set_acknowledges(false);
  begin();
  const v1::PrepareOrder order = agent_.order(1, "exit 3");
  launch(order);
  wait_end(order.member());
  const size_t before = server_.received();
  server_.drop();
  ASSERT_TRUE(server_.wait_sessions(++sessions_));
  ASSERT_TRUE(wait_for([&] { return server_.received() >= before + 3; })) << "sent again in the new session";
  agent_.kill();
  server_.set_acknowledges(true);
  begin();
  ASSERT_TRUE(wait_for([&] { return server_.received() >= before + 6; })) << "and by the next agent";
  // Each counts once, and the next report goes on from there.
  const v1::PrepareOrder other = agent_.order(2, "exit 3");
  launch(other);
  wait_end(other.member());
  uint64_t sequence = 0;
  for (const v1::AgentMessage& report : server_.reports()) {
    if (report.has_exited()) sequence = report.exited().report().sequence();
  }
  EXPECT_EQ(sequence, 6u);
  EXPECT_EQ(server_.reports().size(), 6u);
}

TEST_F(AgentCrash, ADamagedJournalBeginsANewIncarnation) {
  begin();
  const v1::PrepareOrder order = agent_.order(1, "exit 3");
  launch(order);
  wait_end(order.member());
  agent_.kill();
  {
    std::fstream file(agent_.dir() + "/reports", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(40);
    file.put('#');
  }
  begin();
  EXPECT_NE(server_.hellos().front().incarnation(), server_.hellos().back().incarnation());
}

TEST_F(AgentCrash, SigtermEndsOnlyTheAgent) {
  begin();
  const v1::PrepareOrder order = waiting_task(1);
  launch(order);
  EXPECT_EQ(agent_.stop(), kExitOk);
  EXPECT_FALSE(agent_.left_over().empty());
  begin();
  let_go();
  EXPECT_EQ(wait_end(order.member()).code(), 6);
}

TEST_F(AgentCrash, WithoutItsSpawnerAnAgentEndsAndTasksGoOn) {
  begin();
  const v1::PrepareOrder order = waiting_task(1);
  launch(order);
  ASSERT_GT(agent_.spawner(), 0);
  kill(agent_.spawner(), SIGKILL);
  EXPECT_EQ(agent_.wait(), kExitFailed);
  begin();
  let_go();
  EXPECT_EQ(wait_end(order.member()).code(), 6);
  EXPECT_EQ(runs(), "1\n");
}

TEST_F(AgentCrash, CutOffForTooLongATaskThatAskedForItStops) {
  begin();
  v1::PrepareOrder order = agent_.order(1, "sleep 1000");
  order.set_stop_after_ms(1500);
  launch(order);
  agent_.kill();
  ASSERT_TRUE(wait_for([&] { return dir_of(order).read()->end.has_value(); }))
      << "its supervisor needs no agent";
  begin();
  const v1::Exited exited = wait_end(order.member());
  EXPECT_EQ(exited.signal(), SIGTERM);
  EXPECT_EQ(exited.message(), "stopped: no server was heard for 1500 ms (on_disconnect)");
}

TEST_F(AgentCrash, ASilentServerIsLeftForAnother) {
  begin();
  server_.set_heartbeats(false);
  ASSERT_TRUE(server_.wait_sessions(++sessions_));
  server_.set_heartbeats(true);
  const v1::PrepareOrder order = agent_.order(1, "true");
  ASSERT_TRUE(wait_for([&] { return server_.send(prepare(order)); }));
  EXPECT_TRUE(wait_count(v1::AgentMessage::kPrepared, order.member(), 1));
}

TEST_F(AgentCrash, AnotherCellsServerIsRefused) {
  begin();
  ASSERT_TRUE(wait_for(
      [&] { return absl::StrContains(read_file(agent_.dir() + "/node").value_or(""), "cell=test\n"); }));
  agent_.kill();
  server_.set_cell("other");
  agent_.start();
  EXPECT_EQ(agent_.wait(), kExitRefused);
  server_.set_refusal("cell: this is cell 'other', the agent belongs to 'test'");
  agent_.start();
  EXPECT_EQ(agent_.wait(), kExitRefused);
}

TEST_F(AgentCrash, OneAgentADirectory) {
  begin();
  const std::string dir = agent_.dir();
  TestAgent second({server_.address()});
  std::filesystem::remove_all(second.dir());
  std::filesystem::create_directory_symlink(dir, second.dir());
  second.start();
  EXPECT_EQ(second.wait(), kExitRefused);
  std::filesystem::remove(second.dir());
}

TEST_F(AgentCrash, MemoryAboveTheLimitIsAnOomKill) {
  begin();
  for (const std::string& note : server_.hellos().back().description().notes()) {
    if (note.find("memory") != std::string::npos) GTEST_SKIP() << "no memory limit can be set here: " << note;
  }
  v1::PrepareOrder order = agent_.order(1, "exec python3 -c 'x = bytearray(300 << 20)'");
  order.mutable_task()->mutable_resources()->set_memory_bytes(64 << 20);
  launch(order);
  const v1::Exited exited = wait_end(order.member());
  EXPECT_TRUE(exited.out_of_memory());
  EXPECT_EQ(exited.signal(), SIGKILL);
}

TEST(AgentFailover, TheNextServerIsTried) {
  FakeServer server;
  TestAgent agent({"127.0.0.1:1", server.address()});
  agent.start();
  EXPECT_TRUE(server.wait_sessions(1));
}

}  // namespace
}  // namespace muster::agent

int main(int argc, char** argv) {
  if (const int code = muster::agent::agent_main_if_asked(argc, argv); code >= 0) return code;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
