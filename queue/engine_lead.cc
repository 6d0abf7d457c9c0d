// Leadership, planning rounds, and what falls due.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/engine_impl.h"
#include "queue/fold.h"

namespace muster::queue {
namespace {

const v1::ServerState* server_of(const State& state, uint64_t session) {
  for (const v1::ServerState& server : state.meta.servers()) {
    if (server.session() == session) return &server;
  }
  return nullptr;
}

}  // namespace

bool Engine::Impl::leads() const {
  return caught_up && state.meta.owner() == options.session && options.session != 0 && !must_claim;
}

void Engine::Impl::lead(Output* out) {
  const int64_t lease_ms = state.meta.position() >= 0 ? state.meta.lease_ms() : options.lease_ms;
  if (state.meta.position() < 0) {
    if (opening) return;
    opening = true;
    v1::Record record;
    record.mutable_log_opened()->set_lease_ms(options.lease_ms);
    append(std::move(record), out);
    return;
  }
  if (server_of(state, options.session) == nullptr) {
    if (join_sequence != 0) return;  // not read back yet
    v1::Record record;
    v1::ServerJoined& body = *record.mutable_server_joined();
    body.set_session(options.session);
    body.set_server(options.server);
    body.set_address(options.address);
    body.add_formats(kFormat);
    body.set_version(options.version);
    join_sequence = append(std::move(record), out);
    return;
  }
  claim(out);
  look_over_sessions(out);
  leave_when_cut_off(out);
  if (leads()) {
    tick(out);
    decide_due(out);
    plan(out);
  } else if (beat_sequence == 0 && now_ms - last_beat_ms >= lease_ms / 3) {
    last_beat_ms = now_ms;
    v1::Record record;
    record.mutable_server_beat()->set_tick_position(state.meta.tick_position());
    record.mutable_server_beat()->set_chain(state.meta.tick_chain());
    beat_sequence = append(std::move(record), out);
  }
}

// Tries for the term when the owner has been silent for a lease, or can no longer exist: on a log that only
// we write, or when it was this very server, whose directory we have locked.
void Engine::Impl::claim(Output* out) {
  const v1::MetaState& meta = state.meta;
  if (claim_sequence != 0 || (meta.owner() == options.session && !must_claim)) return;
  const v1::ServerState* owner = server_of(state, meta.owner());
  const bool gone = meta.owner() == 0 || owner == nullptr || options.exclusive_log || must_claim ||
                    owner->server() == options.server;
  if (!gone && now_ms - heard_ms < meta.lease_ms()) return;
  if (claimed_ms != 0 && now_ms - claimed_ms < meta.lease_ms() / 4) return;
  claimed_ms = now_ms;
  v1::Record record;
  record.mutable_term_claimed()->set_term(meta.term() + 1);
  record.mutable_term_claimed()->set_seen(owner == nullptr ? -1 : owner->last_position());
  claim_sequence = append(std::move(record), out);
}

void Engine::Impl::tick(Output* out) {
  const int64_t every_ms = options.tick_ms > 0 ? options.tick_ms : state.meta.lease_ms() / 3;
  if (tick_sequence != 0 || (last_tick_ms != 0 && now_ms - last_tick_ms < every_ms)) return;
  last_tick_ms = now_ms;
  v1::Record record;
  record.set_term(state.meta.term());
  record.mutable_tick()->set_tick_position(state.meta.tick_position());
  record.mutable_tick()->set_chain(state.meta.tick_chain());
  tick_sequence = append(std::move(record), out);
}

void Engine::Impl::plan(Output* out) {
  if (!round.empty() || now_ms < plan_not_before_ms) return;
  if (!plan_more && !state.planner.due(state.cluster, state.usage, state.meta.cell_ms())) return;
  const scheduler::Round decided = state.planner.plan(state.cluster, state.usage, state.meta.cell_ms(), {});
  plan_more = decided.more;
  ++rounds;
  std::map<uint64_t, uint32_t> taken;
  for (const scheduler::Placement& placement : decided.placements) place(placement, &taken, out);
}

void Engine::Impl::place(const scheduler::Placement& placement, std::map<uint64_t, uint32_t>* taken,
                         Output* out) {
  const Job& job = *state.find(placement.key);
  v1::Record record;
  record.set_term(state.meta.term());
  record.set_nonce(random());
  v1::Placed& body = *record.mutable_placed();
  body.set_job(placement.key.job);
  body.set_element(placement.key.element);
  body.set_attempt(job.state.attempts() + 1);
  body.set_revision(job.state.revision());
  if (job.is_array()) {  // the n-th placement takes the n-th waiting element
    uint32_t skip = (*taken)[placement.key.job]++;
    for (const v1::IndexRange& range : job.state.array().pending()) {
      const uint32_t count = range.last() - range.first() + 1;
      if (skip < count) {
        body.set_element(range.first() + skip + 1);
        break;
      }
      skip -= count;
    }
    body.set_attempt(1);
  }
  for (const scheduler::MemberPlace& member : placement.members) {
    const scheduler::Node& node = *state.cluster.find(member.node);
    v1::Place& place = *body.add_places();
    place.set_node(member.node);
    place.set_node_revision(node.revision);
    place.set_node_session(node.session);
    for (uint32_t device : member.devices) place.add_devices(device);
  }
  round.insert(append(std::move(record), out));
}

// Appends a decision once: not again while it is in flight.
void Engine::Impl::decide(const std::string& what, v1::Record record, Output* out) {
  if (!due_now.insert(what).second) return;
  record.set_term(state.meta.term());
  due[append(std::move(record), out)] = what;
}

// Deadlines are in cell time, so each Tick is when to look.
void Engine::Impl::decide_due(Output* out) {
  if (ticked_position == state.meta.tick_position()) return;
  ticked_position = state.meta.tick_position();
  constexpr int kAtOnce = 1000;
  int count = 0;
  for (const auto& [deadline_ms, key] : state.deadlines) {
    if (deadline_ms > state.meta.cell_ms() || ++count > kAtOnce) break;
    decide_gang(key, out);
  }
  decide_nodes(out);
}

void Engine::Impl::decide_gang(const GangKey& key, Output* out) {
  const Job& job = *state.find(key);
  const v1::AttemptState& attempt = job.state.attempt();
  const int64_t cell_ms = state.meta.cell_ms();
  const bool starting = job.state.phase() != v1::RUNNING;
  const bool over_time = !starting && job.state.time_limit_ms() > 0 &&
                         cell_ms >= attempt.running_ms() + job.state.time_limit_ms();
  if (starting || over_time) {
    v1::Record record;
    v1::GangStopped& body = *record.mutable_gang_stopped();
    body.set_job(key.job);
    body.set_element(key.element);
    body.set_attempt(attempt.number());
    body.set_reason(starting ? v1::START_LIMIT : v1::TIME_LIMIT);
    decide(absl::StrCat("stop/", job_name(key.job, key.element)), std::move(record), out);
    return;
  }
  for (int rank = 0; rank < attempt.members_size(); ++rank) {
    const v1::MemberState& member = attempt.members(rank);
    if (member.phase() != v1::MEMBER_RESTARTING || member.restart_at_ms() > cell_ms) continue;
    v1::Record record;
    v1::MemberRestarted& body = *record.mutable_member_restarted();
    body.set_job(key.job);
    body.set_element(key.element);
    body.set_attempt(attempt.number());
    body.set_rank(static_cast<uint32_t>(rank));
    body.set_run(member.run() + 1);
    decide(absl::StrCat("restart/", job_name(key.job, key.element), ".", rank), std::move(record), out);
  }
}

void Engine::Impl::decide_nodes(Output* out) {
  const int64_t cell_ms = state.meta.cell_ms();
  for (const auto& [name, node] : state.nodes) {
    if (node.state.lost()) continue;
    v1::Record record;
    if (node.state.unreachable()) {
      if (cell_ms < lost_at_ms(state, node)) continue;
      record.mutable_node_lost()->set_node(name);
      record.mutable_node_lost()->set_session(node.state.session());
      decide(absl::StrCat("lost/", name), std::move(record), out);
      continue;
    }
    // The leader speaks for the sessions of servers that fell silent.
    if (node.state.server() == options.session) continue;
    const v1::ServerState* server = server_of(state, node.state.server());
    if (server != nullptr && cell_ms - server->heard_ms() < 3 * state.meta.lease_ms()) continue;
    record.mutable_node_unreachable()->set_node(name);
    record.mutable_node_unreachable()->set_session(node.state.session());
    decide(absl::StrCat("unreachable/", name), std::move(record), out);
  }
}

int64_t Engine::wake_at_ms() const {
  const State& state = impl_->state;
  int64_t out = state.planner.wake_at_ms();
  const auto earlier = [&](int64_t at_ms) {
    if (out == 0 || at_ms < out) out = at_ms;
  };
  if (!state.deadlines.empty()) earlier(state.deadlines.begin()->first);
  for (const auto& [name, node] : state.nodes) {
    if (node.state.unreachable() && !node.state.lost()) earlier(lost_at_ms(state, node));
  }
  return out;
}

}  // namespace muster::queue
