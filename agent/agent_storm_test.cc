// An agent that is killed again and again while members start and end: as in the cell's own crash test, but
// with all of the blows on one agent. Each member writes a line when it begins; none may have two, and every
// end is told.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "agent/files.h"
#include "agent/task_dir.h"
#include "agent/test_agent.h"

namespace muster::agent {
namespace {

constexpr uint64_t kMembers = 60;
constexpr int kKills = 25;

// Says what the reports so far leave to be done, as the session's server does from the fold.
void send_orders(FakeServer* server, const std::vector<v1::PrepareOrder>& orders, size_t first_ones) {
  const std::vector<v1::AgentMessage> reports = server->reports();
  for (size_t i = 0; i < std::min(first_ones, orders.size()); ++i) {
    const v1::PrepareOrder& order = orders[i];
    if (exited_of(reports, order.member()) != nullptr) continue;
    const bool prepared = count_of(reports, v1::AgentMessage::kPrepared, order.member()) != 0;
    const bool started = count_of(reports, v1::AgentMessage::kStarted, order.member()) != 0;
    if (!prepared) server->send(prepare(order));
    if (prepared && !started) server->send(start(TestAgent::start_order(order.member())));
  }
}

TEST(AgentStorm, EachMemberRunsOnceAndEveryEndIsTold) {
  FakeServer server;
  TestAgent agent({server.address()});
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  std::vector<v1::PrepareOrder> orders;
  for (uint64_t job = 1; job <= kMembers; ++job)
    orders.push_back(agent.order(job, absl::StrCat("echo begin >> ", agent.dir(), "/run-", job, "; sleep 0.0",
                                                   random() % 10, "; exit ", job % 3)));
  agent.start();
  int kills = 0;
  for (int round = 0; round < 3000; ++round) {
    send_orders(&server, orders, 1 + static_cast<size_t>(round) / 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 60));
    if (kills < kKills && random() % 3 == 0) {
      agent.kill();
      ++kills;
      agent.start();
    }
    const std::vector<v1::AgentMessage> reports = server.reports();
    const bool all = std::all_of(orders.begin(), orders.end(), [&](const v1::PrepareOrder& order) {
      return exited_of(reports, order.member()) != nullptr;
    });
    if (all) break;
  }
  for (const v1::PrepareOrder& order : orders) {
    const uint64_t job = order.member().job();
    const std::vector<v1::AgentMessage> reports = server.reports();
    const v1::Exited* exited = exited_of(reports, order.member());
    ASSERT_NE(exited, nullptr) << job;
    EXPECT_FALSE(exited->never_started()) << job << ": " << exited->message();
    EXPECT_FALSE(exited->supervisor_lost()) << job;
    EXPECT_EQ(exited->code(), static_cast<int>(job % 3)) << job;
    EXPECT_EQ(read_file(absl::StrCat(agent.dir(), "/run-", job)).value_or(""), "begin\n") << job;
  }
  EXPECT_TRUE(agent.wait_nothing_left());
}

}  // namespace
}  // namespace muster::agent

int main(int argc, char** argv) {
  if (const int code = muster::agent::agent_main_if_asked(argc, argv); code >= 0) return code;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
