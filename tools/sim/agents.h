// The agents of a simulated cell: one a node. They do what the server orders, take virtual time for it, and
// check from the outside what the laws promise: no member runs twice in one attempt, none before its gang is
// prepared, no device is used by two.
//
// One thread; owned by a World, which delivers messages and runs timers.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "muster/v1/service.pb.h"
#include "tools/sim/scenario.h"

namespace muster::sim {

// What the agents need of the world around them.
class AgentHost {
 public:
  virtual ~AgentHost() = default;
  virtual int64_t now_ms() const = 0;
  virtual void at(int64_t ms, std::function<void()> act) = 0;
  virtual void to_server(uint64_t stream, v1::AgentMessage message) = 0;
  virtual uint64_t open_stream(const std::string& node) = 0;
  virtual void stream_gone(uint64_t stream) = 0;
  virtual void violation(std::string what) = 0;
  virtual const ScenarioJob* job_of(uint64_t job) const = 0;
};

class Agents {
 public:
  explicit Agents(AgentHost& host) : host_(host) {}

  void add(const ScenarioNode& node);  // and connects
  bool knows(const std::string& node) const { return nodes_.contains(node); }
  void crash(const std::string& node);      // its tasks are gone
  void partition(const std::string& node);  // its tasks go on
  void come_back(const std::string& node);
  void shrink(const std::string& node, int64_t gpus);
  void order(const std::string& node, uint64_t stream, const v1::ServerMessage& message);
  // The server was killed: every node that is not cut off opens a new session.
  void reconnect_all();

 private:
  struct Task {
    v1::MemberRef ref;
    std::vector<uint32_t> devices;
    uint32_t run = 0;
    bool running = false, ending = false;
    uint64_t ticket = 0;  // what a timer must still find
  };
  struct Node {
    std::string name;
    v1::NodeDescription description;
    uint64_t stream = 0, incarnation = 1, sequence = 0;
    bool silent = false, open = false;
    std::map<std::string, Task> tasks;                    // by member, attempt
    std::map<uint64_t, v1::AgentMessage> unacknowledged;  // by sequence
  };
  // One attempt of a gang, over all its nodes.
  struct Attempt {
    uint32_t prepared = 0;
    int64_t started_ms = -1, stopped_ms = -1;
    std::set<std::pair<uint32_t, uint32_t>> starts;  // rank, run
  };

  void connect(Node& node);
  void prepare(Node& node, const v1::PrepareOrder& order);
  void start(Node& node, const v1::StartOrder& order);
  void stop(Node& node, const v1::StopOrder& order);
  void prepared(Node& node, Task& task, const Failure* failure);
  void exit(Node& node, const v1::MemberRef& ref, uint32_t run, int code, int signal, bool never);
  void report(Node& node, v1::AgentMessage message, v1::ReportHeader* header);
  void check_start(const Node& node, const Task& task, const v1::StartOrder& order);
  void end_later(Node& node, Task& task, int64_t at_ms, int code, int signal);
  Attempt& attempt_of(const v1::MemberRef& ref);
  int64_t end_of(const v1::MemberRef& ref);
  void keep_progress(const v1::MemberRef& ref);

  AgentHost& host_;
  std::map<std::string, Node> nodes_;
  std::map<std::pair<uint64_t, uint32_t>, std::map<uint32_t, Attempt>> attempts_;  // by gang: by number
  std::map<std::pair<uint64_t, uint32_t>, int64_t> progress_ms_;                   // by gang
  uint64_t next_ticket_ = 1;
};

}  // namespace muster::sim
