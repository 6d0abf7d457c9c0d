// Inside the engine; included only by queue/engine*.cc. One file a concern: engine.cc the log and requests,
// engine_lead.cc leadership and decisions, engine_agents.cc streams and orders.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "queue/engine.h"

namespace muster::queue {

// A connection of an agent. It is a session once its SessionOpened was folded.
struct AgentStream {
  std::string node;
  uint64_t session = 0;
  bool open = false;
  v1::Hello hello;  // until the session is open
};

struct Engine::Impl {
  Impl(EngineOptions options, State state);

  EngineOptions options;
  State state;
  std::vector<Write> early_writes;  // flushed at a digest position
  std::map<int64_t, StateDigest>
      digests;  // our own, at the last positions that are a multiple of kDigestEvery
  bool caught_up = false;
  int64_t now_ms = 0, wall_ms = 0;

  // Appending.
  uint64_t next_sequence = 1;
  uint64_t nonce_state;
  absl::flat_hash_map<uint64_t, uint64_t> request_of;   // sequence → request
  absl::flat_hash_map<uint64_t, uint64_t> sequence_of;  // request → sequence

  // Leading.
  bool opening = false;
  uint64_t join_sequence = 0;  // in flight; 0: none
  bool must_claim = false;  // an append of ours has an unknown outcome: only a new term makes decisions count
  uint64_t claim_sequence = 0;  // in flight; 0: none
  uint64_t tick_sequence = 0;
  uint64_t beat_sequence = 0;
  int64_t last_tick_ms = 0, last_beat_ms = 0, claimed_ms = 0;
  int64_t heard_ms = 0;                            // local time of the owner's last record
  int64_t ticked_position = -1;                    // the Tick that due decisions were last looked for at
  int64_t sessions_position = -1;                  // the Tick that our sessions were last looked over at
  int64_t tick_heard_ms = 0;                       // local time of the last Tick folded
  absl::flat_hash_set<uint64_t> round;             // sequences of the decisions in flight
  absl::flat_hash_map<uint64_t, std::string> due;  // sequence → what was decided, in flight
  std::set<std::string> due_now;
  int64_t plan_not_before_ms = 0;
  uint64_t defects = 0;
  uint64_t rounds = 0;
  bool plan_more = false;

  // Agents.
  std::map<uint64_t, AgentStream> streams;
  std::map<std::string, uint64_t> stream_of_node;
  absl::flat_hash_map<uint64_t, uint64_t> report_stream;  // sequence → stream
  // What each member of a gang that holds places was last told in its node's present session, so that one
  // member's report says nothing again to the others.
  struct Told {
    int64_t fence = 0;
    std::vector<uint32_t> kinds;  // by rank: 0 nothing, 1 prepare, 2 stop, 2 + run: start
  };
  absl::flat_hash_map<GangKey, Told> told;

  bool leads() const;
  uint64_t random();
  uint64_t append(v1::Record record, Output* out);
  void folded_own(uint64_t sequence, const LogInput& input, const Outcome& outcome, Output* out);
  void keep_digest(const LogInput& input, Output* out);
  void compare_digest(const v1::DigestRecorded& body, Output* out);

  // engine_lead.cc
  void lead(Output* out);
  void claim(Output* out);
  void tick(Output* out);
  void plan(Output* out);
  void place(const scheduler::Placement& placement, std::map<uint64_t, uint32_t>* taken, Output* out);
  void decide_due(Output* out);
  void decide_gang(const GangKey& key, Output* out);
  void decide_nodes(Output* out);
  void decide(const std::string& what, v1::Record record, Output* out);

  // engine_agents.cc
  void hello(uint64_t stream, v1::Hello message, Output* out);
  void report(uint64_t stream, v1::Record record, v1::ReportHeader* header, Output* out);
  void session_folded(const v1::SessionOpened& body, Output* out);
  void refuse_stream(uint64_t stream, const std::string& why, Output* out);
  void order_gang(const Job& job, Output* out);
  void order_ended(const Job& job, Output* out);
  void order_member(const Job& job, uint32_t rank, uint64_t stream, std::optional<v1::JobSpec>* spec,
                    Output* out);
  void order_stale(uint64_t stream, const v1::MemberRef& member, Output* out);
  void orders_for(const Effects& effects, Output* out);
  void close_declared_gone(const std::string& node, Output* out);
  void look_over_sessions(Output* out);
  void leave_when_cut_off(Output* out);
};

inline constexpr int64_t kDigestEvery = 65'536;

v1::MemberRef member_ref(const Job& job, uint32_t rank);
v1::PrepareOrder prepare_order(const State& state, const Job& job, const v1::JobSpec& spec, uint32_t rank);
v1::StartOrder start_order(const Job& job, const v1::JobSpec& spec, uint32_t rank);
bool barrier_passed(const Job& job);

}  // namespace muster::queue
