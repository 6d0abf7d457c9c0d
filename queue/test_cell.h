// A cell in a test: the real engine on a log, a store, agents and a clock of the test's own. Everything that
// is appended is folded; after every record the invariants are checked, and finish() demands that a replay
// has the same digest.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "queue/engine.h"

namespace muster::queue {

struct TestRecord {
  int64_t timestamp_ms = 0;
  std::string key, value;
};

class TestHistory : public HistoryReader {
 public:
  std::optional<std::string> get(Entity table, const std::string& key) override;
  void scan_expiry(const std::function<bool(const std::string&)>& visit) override;
  void write(std::vector<Write> writes);
  // Rebuilds a state, as a restarted server does.
  State load() const;
  std::map<std::pair<int, std::string>, std::string> entities;
};

class TestCell {
 public:
  // What a fake agent does with a member, beyond preparing and starting at once.
  struct Agent {
    std::string name;
    uint64_t stream = 0;
    uint64_t incarnation = 1;
    uint64_t sequence = 0;
    bool connected = false;
    bool prepares = true, starts = true, stops = true;
    std::map<std::string, v1::MemberRef> running;  // by "job[.element].rank"
    std::map<std::string, v1::MemberRef> prepared;
    std::map<std::string, uint32_t> run;                  // the run that was started last
    std::map<uint64_t, v1::AgentMessage> unacknowledged;  // by sequence; sent again in the next session
    v1::NodeDescription description;
  };

  explicit TestCell(int64_t lease_ms = 3000);
  Agent& node(const std::string& name, int cpu, int gpus = 0, const std::string& model = "a100",
              std::map<std::string, std::string> labels = {});
  void disconnect(const std::string& name);
  void connect(const std::string& name);
  // Returns the outcome that the client is told.
  Outcome submit(const v1::JobSpec& spec, const std::string& key = "");
  Outcome ask(v1::Record body);
  // The task of this member ends.
  void exit_member(const std::string& member, int code, int signal = 0);
  void pass(int64_t ms);
  void crash();  // the server is killed and started again from its store and the log; agents come back
  void pump();
  void finish();

  // "12 RUNNING", "12[3] FAILED EXIT 3": for a job, wherever it is.
  std::string status(uint64_t job, uint32_t element = 0) const;
  v1::JobState job(uint64_t job, uint32_t element = 0) const;
  std::string digest();

  std::vector<TestRecord> log;
  std::vector<std::string> script;  // what happened, a line each: for golden scripts
  std::map<std::string, Agent> agents;
  TestHistory history;
  std::unique_ptr<Engine> engine;
  bool drop_appends = false;  // appends fail: none of them is in the log

 private:
  void start();
  void take(Output out);
  void fold_all();
  void obey(Agent& agent, const v1::ServerMessage& message, Output* out);
  void send(Agent& agent, v1::AgentMessage message, Output* out);
  void report_exit(Agent& agent, const v1::MemberRef& ref, int code, int signal, bool never, Output* out);

  int64_t lease_ms_, now_ms_ = 1000;
  size_t folded_ = 0;
  uint64_t next_request_ = 1, next_stream_ = 1, next_session_ = 100;
  std::map<uint64_t, Outcome> replies_;
  std::vector<Order> orders_;
  std::set<std::string> reconnect_;  // agents whose stream was refused
};

// A job of one task named "main", with the server's defaults filled in.
v1::JobSpec test_spec(const std::string& name, uint32_t replicas = 1, int64_t cpu = 1, int64_t gpus = 0);
std::string member_name(const v1::MemberRef& ref);

}  // namespace muster::queue
