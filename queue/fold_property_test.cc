// What must hold for any history: after every record each index is what the entities say (TestCell checks
// it), a replay has the same digest, a record that arrives twice changes nothing that counts, and what lives
// in the end can end.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "absl/strings/str_cat.h"
#include "queue/test_cell.h"

namespace muster::queue {
namespace {

v1::JobSpec random_spec(int number) {
  v1::JobSpec spec = test_spec(absl::StrCat("j", number), *rc::gen::inRange<uint32_t>(1, 5),
                               *rc::gen::inRange<int64_t>(1, 4), *rc::gen::inRange<int64_t>(0, 3));
  spec.mutable_retries()->set_own(*rc::gen::inRange<uint32_t>(0, 3));
  spec.set_priority(*rc::gen::inRange(-1, 2));
  if (*rc::gen::inRange(0, 4) == 0) {
    spec.mutable_array()->set_count(*rc::gen::inRange<uint32_t>(1, 6));
    spec.mutable_array()->set_running(*rc::gen::inRange<uint32_t>(0, 3));
  }
  if (number > 0 && *rc::gen::inRange(0, 4) == 0)
    spec.mutable_after()->add_any(absl::StrCat("j", *rc::gen::inRange(0, number)));
  if (number > 0 && *rc::gen::inRange(0, 6) == 0)
    spec.mutable_after()->add_ok(absl::StrCat("j", *rc::gen::inRange(0, number)));
  if (*rc::gen::inRange(0, 4) == 0) spec.set_time_limit_ms(5000);
  spec.mutable_tasks(0)->set_on_failure(
      *rc::gen::element(v1::ON_FAILURE_STOP, v1::ON_FAILURE_IGNORE, v1::ON_FAILURE_RESTART));
  return spec;
}

// A member that runs somewhere, or "".
std::string any_running(const TestCell& cell) {
  std::vector<std::string> all;
  for (const auto& [name, agent] : cell.agents) {
    if (!agent.connected) continue;
    for (const auto& [member, ref] : agent.running) all.push_back(member);
  }
  return all.empty() ? "" : *rc::gen::elementOf(all);
}

v1::Record any_request(uint64_t jobs) {
  const uint64_t job = *rc::gen::inRange<uint64_t>(1, jobs + 2);
  const uint32_t element = *rc::gen::inRange<uint32_t>(0, 3);
  v1::Record body;
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      body.mutable_cancel_requested()->set_job(job);
      body.mutable_cancel_requested()->set_element(element);
      break;
    case 1:
      body.mutable_hold_requested()->set_job(job);
      break;
    case 2:
      body.mutable_release_requested()->set_job(job);
      break;
    case 3:
      body.mutable_requeue_requested()->set_job(job);
      body.mutable_requeue_requested()->set_element(element);
      break;
    default:
      body.mutable_updated()->set_job(job);
      body.mutable_updated()->set_priority(*rc::gen::inRange(-2, 3));
      body.mutable_updated()->set_time_limit_ms(*rc::gen::inRange(0, 8000));
  }
  return body;
}

void step(TestCell& cell, int* submitted) {
  const std::string node = absl::StrCat("n", *rc::gen::inRange(0, 3));
  const bool known = cell.agents.contains(node);
  switch (*rc::gen::inRange(0, 10)) {
    case 0:
    case 1:
    case 2:
      cell.submit(random_spec((*submitted)++));
      break;
    case 3:
    case 4:
      if (const std::string member = any_running(cell); !member.empty())
        cell.exit_member(member, *rc::gen::element(0, 0, 1), *rc::gen::element(0, 0, 9));
      break;
    case 5:
      cell.ask(any_request(static_cast<uint64_t>(*submitted)));
      break;
    case 6:
      cell.pass(*rc::gen::inRange(1000, 20'000));
      break;
    case 7:
      if (!known)
        cell.node(node, 6, 4);
      else if (cell.agents.at(node).connected)
        cell.disconnect(node);
      else
        cell.connect(node);
      break;
    case 8:
      cell.crash();
      break;
    default:  // a record arrives twice
      if (!cell.log.empty()) {
        TestRecord again = cell.log[*rc::gen::inRange<size_t>(0, cell.log.size())];
        again.timestamp_ms = cell.log.back().timestamp_ms;
        cell.log.push_back(again);
        cell.pump();
      }
  }
}

// Lets everything end: nodes are back, nothing is held, every task exits.
void drain(TestCell& cell, int submitted) {
  for (int n = 0; n < 3; ++n) {
    const std::string node = absl::StrCat("n", n);
    if (!cell.agents.contains(node))
      cell.node(node, 6, 4);
    else if (!cell.agents.at(node).connected)
      cell.connect(node);
  }
  for (int job = 1; job <= submitted; ++job) {
    v1::Record release;
    release.mutable_release_requested()->set_job(static_cast<uint64_t>(job));
    cell.ask(release);
  }
  for (int rounds = 0; rounds < 150 && !cell.engine->state().jobs.empty(); ++rounds) {
    const size_t live = cell.engine->state().jobs.size();
    std::vector<std::string> running;
    for (const auto& [name, agent] : cell.agents) {
      for (const auto& [member, ref] : agent.running) running.push_back(member);
    }
    for (const std::string& member : running) {
      bool there = false;
      for (const auto& [name, agent] : cell.agents) there |= agent.running.contains(member);
      if (there) cell.exit_member(member, 0);
    }
    if (running.empty() || cell.engine->state().jobs.size() == live) cell.pass(61'000);
  }
}

RC_GTEST_PROP(Fold, AnyHistoryKeepsTheLaws, ()) {
  TestCell cell;
  cell.node("n0", 6, 4);
  int submitted = 0;
  const int steps = *rc::gen::inRange(5, 60);
  for (int i = 0; i < steps; ++i) step(cell, &submitted);
  drain(cell, submitted);
  RC_ASSERT(cell.engine->state().jobs.empty());
  for (const auto& [name, node] : cell.engine->state().cluster.nodes()) {
    RC_ASSERT(node.used == scheduler::Resources{});
    RC_ASSERT(node.members == 0u);
  }
  cell.finish();
  RC_ASSERT(!::testing::Test::HasFailure());
}

}  // namespace
}  // namespace muster::queue
