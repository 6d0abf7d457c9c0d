// How many trivial tasks (/bin/true, each under its supervisor) one agent runs to completion in a second,
// with a server that costs nothing. Usage: agent_bench [TASKS [AT_ONCE]]. Prints one JSON object.
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "agent/test_agent.h"

namespace muster::agent {
namespace {

v1::PrepareOrder trivial(const TestAgent& agent, uint64_t job) {
  v1::PrepareOrder order = agent.order(job, "");
  order.mutable_task()->clear_command();
  order.mutable_task()->add_command("/bin/true");
  order.mutable_task()->mutable_resources()->set_cpu_milli(1000);
  return order;
}

// Orders one after the other, so many at once, as a server would: start when prepared, forget when ended.
int run(uint64_t tasks, uint64_t at_once) {
  FakeServer server;
  TestAgent agent({server.address()});
  agent.start();
  if (!server.wait_sessions(1)) return 1;
  const auto began = std::chrono::steady_clock::now();
  uint64_t sent = 0;
  uint64_t ended = 0;
  size_t seen = 0;
  while (sent < tasks && sent < at_once) server.send(prepare(trivial(agent, ++sent)));
  while (ended < tasks) {
    std::vector<v1::AgentMessage> fresh;
    const bool came = server.wait_reports([&](const std::vector<v1::AgentMessage>& reports) {
      fresh.assign(reports.begin() + static_cast<long>(seen), reports.end());
      return !fresh.empty();
    });
    if (!came) return 1;
    seen += fresh.size();
    for (const v1::AgentMessage& report : fresh) {
      if (report.has_prepared()) server.send(start(TestAgent::start_order(report.prepared().member())));
      if (!report.has_exited()) continue;
      if (report.exited().code() != 0 || report.exited().never_started()) return 1;
      ++ended;
      server.send(forget(report.exited().member()));
      if (sent < tasks) server.send(prepare(trivial(agent, ++sent)));
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  agent.stop();
  std::printf("{\"bench\": \"agent\", \"tasks\": %lu, \"at_once\": %lu, \"per_s\": %.1f}\n", tasks, at_once,
              static_cast<double>(tasks) / seconds);
  return 0;
}

}  // namespace
}  // namespace muster::agent

int main(int argc, char** argv) {
  if (const int code = muster::agent::agent_main_if_asked(argc, argv); code >= 0) return code;
  const uint64_t tasks = argc > 1 ? strtoull(argv[1], nullptr, 10) : 2000;
  const uint64_t at_once = argc > 2 ? strtoull(argv[2], nullptr, 10) : 32;
  return muster::agent::run(tasks, at_once);
}
