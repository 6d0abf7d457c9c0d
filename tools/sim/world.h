// A cell in virtual time: the real engine, fold and planner on a log and a store in memory, with simulated
// agents and clients. No thread, no sleep, no clock: the same scenario gives the same records, bit for bit.
//
// All that falls on one instant is folded before anything is planned at it, so that what ends and what comes
// at one time is seen together.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "queue/engine.h"
#include "storage/log.h"
#include "storage/state_store.h"
#include "tools/sim/agents.h"
#include "tools/sim/scenario.h"

namespace muster::sim {

// A job, or an array's element, as it was last seen, with all its attempts.
struct Seen {
  v1::JobState state;
  std::map<uint32_t, v1::AttemptState> attempts;  // by number
};

class World : public AgentHost {
 public:
  // The scenario's start on the world's own clock: the engine reads 0 as "never".
  static constexpr int64_t kOrigin = 1'000'000;
  // Cell time at the scenario's start: the state reads 0 as "not yet".
  static constexpr int64_t kCellOrigin = 1;

  explicit World(const Scenario& scenario);

  // To the scenario's end. kInvalidArgument: an event names what isn't there. Once.
  absl::Status run();

  const std::map<queue::GangKey, Seen>& jobs() const { return seen_; }
  const std::vector<std::string>& violations() const { return violations_; }
  const queue::State& state() const { return engine_->state(); }
  const Scenario& scenario() const { return scenario_; }
  // Of the scenario's job: nullptr: it was never submitted.
  const std::string* refusal_of(const std::string& job) const;
  int64_t end_ms() const { return now_ms_ - kOrigin + kCellOrigin; }  // in cell time
  uint64_t rounds() const { return rounds_before_ + engine_->rounds(); }
  size_t records() const { return log_.size(); }
  std::string digest() const { return engine_->state().digest().hex(); }

  // AgentHost; times are of the world's own clock.
  int64_t now_ms() const override { return now_ms_; }
  void at(int64_t ms, std::function<void()> act) override;
  void to_server(uint64_t stream, v1::AgentMessage message) override;
  uint64_t open_stream(const std::string& node) override;
  void stream_gone(uint64_t stream) override;
  void violation(std::string what) override;
  const ScenarioJob* job_of(uint64_t job) const override;

 private:
  void start_server();
  void restart_server();
  void take(queue::Output out);
  void deliver(const queue::Order& order);
  void fold_one();
  bool fold_all();
  bool act_now();
  void rest();  // until nothing more happens at this instant
  int64_t due_ms() const;
  int64_t tick_ms() const;
  bool is_due() const;
  int64_t next_ms() const;
  void observe();
  void see(const std::string& bytes);
  void check_replay();

  void schedule();
  void submit(const ScenarioJob& job, const std::string& key, uint64_t retry_of);
  void ask(v1::Record body, std::string job);
  void answered(uint64_t request, const queue::Outcome& outcome);
  void happen(const ScenarioEvent& event);
  void happen_to_node(const ScenarioEvent& event);
  void happen_to_job(const ScenarioEvent& event);
  void wrong(const ScenarioEvent& event, const std::string& why);

  const Scenario& scenario_;
  Agents agents_;
  std::unique_ptr<storage::StateStore> store_;
  std::unique_ptr<queue::Engine> engine_;
  std::vector<storage::LogRecord> log_;
  size_t folded_ = 0;
  v1::Record record_;  // reused
  int64_t now_ms_ = kOrigin - kCellOrigin, lease_ms_;
  std::map<std::pair<int64_t, uint64_t>, std::function<void()>> timers_;
  uint64_t next_timer_ = 1;
  std::deque<queue::Order> orders_;
  absl::flat_hash_map<uint64_t, std::string> node_of_stream_;
  uint64_t next_stream_ = 1, next_request_ = 1, next_session_ = 1;
  uint64_t kill_at_step_ = 0, steps_ = 0, rounds_before_ = 0;
  bool kill_ = false;
  bool stirred_ = false;  // something was folded that the engine has not decided on

  struct Asked {
    v1::Record body;
    std::string job;  // of the scenario, when this submits it
  };
  std::map<uint64_t, Asked> asked_;                         // unanswered
  std::map<std::string, uint64_t> id_of_;                   // the newest job of that name
  absl::flat_hash_map<uint64_t, const ScenarioJob*> jobs_;  // by id
  std::map<std::string, const ScenarioJob*> by_name_;
  std::map<std::string, std::string> refused_;
  std::map<queue::GangKey, Seen> seen_;
  std::vector<std::string> violations_;
  absl::Status bad_;
};

}  // namespace muster::sim
