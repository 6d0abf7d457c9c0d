// For tests: a real agent in a process of its own (this test program, started again with `--agent`), in a
// directory of its own, with orders that are easily written. When it goes it stops the agent and ends what
// the tasks left; `left_over` says what that was.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "agent/fake_server.h"
#include "muster/v1/service.pb.h"

namespace muster::agent {

class TestAgent {
 public:
  explicit TestAgent(std::vector<std::string> servers, std::vector<std::string> flags = {});
  ~TestAgent();

  void start();
  void kill();            // SIGKILL
  int stop();             // SIGTERM; the exit code
  int wait();             // for its own end; the exit code
  pid_t spawner() const;  // -1: not there
  const std::string& dir() const { return dir_; }
  const std::string& marker() const { return marker_; }

  // A member that runs `sh -c TEXT`; rank 0 of attempt 1 unless changed.
  v1::PrepareOrder order(uint64_t job, const std::string& text) const;
  static v1::StartOrder start_order(const v1::MemberRef& member, uint32_t run = 1);

  // Processes of the tasks, and supervisors, that are alive.
  std::vector<pid_t> left_over() const;
  bool wait_nothing_left() const;

 private:
  std::vector<std::string> servers_;
  std::vector<std::string> flags_;
  std::string dir_;
  std::string marker_;
  pid_t pid_ = -1;
};

// `main` of a test program that uses TestAgent: runs the agent when started as one. Returns -1 otherwise.
int agent_main_if_asked(int argc, char** argv);

// Messages around an order.
v1::ServerMessage prepare(const v1::PrepareOrder& order);
v1::ServerMessage start(const v1::StartOrder& order);
v1::ServerMessage stop(const v1::MemberRef& member, int64_t grace_ms, const std::string& signal = "TERM");
v1::ServerMessage forget(const v1::MemberRef& member);

// The first Exited of the member in the reports, or null.
const v1::Exited* exited_of(const std::vector<v1::AgentMessage>& reports, const v1::MemberRef& member,
                            uint32_t run = 0);
// How many reports of that kind there are of the member.
int count_of(const std::vector<v1::AgentMessage>& reports, v1::AgentMessage::WhatCase kind,
             const v1::MemberRef& member);

}  // namespace muster::agent
