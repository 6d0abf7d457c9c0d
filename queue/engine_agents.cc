// Agents' streams, and the orders that follow from the state. An order is derived, never remembered: whoever
// holds the node's session can say again what its members must do.
#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/engine_impl.h"

namespace muster::queue {

uint64_t Engine::stream_of(const std::string& node) const {
  const auto it = impl_->stream_of_node.find(node);
  return it == impl_->stream_of_node.end() ? 0 : it->second;
}

void Engine::agent_message(uint64_t stream, v1::AgentMessage message, int64_t now_ms, int64_t wall_ms,
                           Output* out) {
  Impl& e = *impl_;
  e.now_ms = now_ms;
  e.wall_ms = wall_ms;
  v1::Record record;
  switch (message.what_case()) {
    case v1::AgentMessage::kHello:
      return e.hello(stream, std::move(*message.mutable_hello()), out);
    case v1::AgentMessage::kPrepared:
      *record.mutable_prepared() = std::move(*message.mutable_prepared());
      return e.report(stream, std::move(record), record.mutable_prepared()->mutable_report(), out);
    case v1::AgentMessage::kPrepareFailed:
      *record.mutable_prepare_failed() = std::move(*message.mutable_prepare_failed());
      return e.report(stream, std::move(record), record.mutable_prepare_failed()->mutable_report(), out);
    case v1::AgentMessage::kStarted:
      *record.mutable_started() = std::move(*message.mutable_started());
      return e.report(stream, std::move(record), record.mutable_started()->mutable_report(), out);
    case v1::AgentMessage::kExited:
      *record.mutable_exited() = std::move(*message.mutable_exited());
      return e.report(stream, std::move(record), record.mutable_exited()->mutable_report(), out);
    default:
      return;  // heartbeats and output are the driver's
  }
}

void Engine::Impl::hello(uint64_t number, v1::Hello message, Output* out) {
  if (!caught_up) return refuse_stream(number, "the server is still reading the log; try again", out);
  if (!message.cell().empty() && message.cell() != options.cell)
    return refuse_stream(
        number,
        absl::StrCat("cell: this is cell '", options.cell, "', the agent belongs to '", message.cell(), "'"),
        out);
  AgentStream& stream = streams[number];
  stream.node = message.node();
  stream.session = random();
  v1::Record record;
  v1::SessionOpened& body = *record.mutable_session_opened();
  body.set_node(message.node());
  body.set_incarnation(message.incarnation());
  body.set_session(stream.session);
  body.set_server(options.session);
  *body.mutable_description() = message.description();
  stream.hello = std::move(message);
  append(std::move(record), out);
}

void Engine::Impl::report(uint64_t number, v1::Record record, v1::ReportHeader* header, Output* out) {
  const auto stream = streams.find(number);
  if (stream == streams.end() || !stream->second.open) return;  // it is sent again in a session
  header->set_session(stream->second.session);
  header->set_node(stream->second.node);
  report_stream[append(std::move(record), out)] = number;
}

void Engine::Impl::refuse_stream(uint64_t number, const std::string& why, Output* out) {
  Order order;
  order.stream = number;
  order.message.set_refused(why);
  order.close = true;
  out->orders.push_back(std::move(order));
  const auto it = streams.find(number);
  if (it == streams.end()) return;
  const auto current = stream_of_node.find(it->second.node);
  if (current != stream_of_node.end() && current->second == number) stream_of_node.erase(current);
  streams.erase(it);
}

void Engine::agent_gone(uint64_t number, int64_t now_ms, Output* out) {
  Impl& e = *impl_;
  e.now_ms = now_ms;
  const auto it = e.streams.find(number);
  if (it == e.streams.end()) return;
  const AgentStream stream = std::move(it->second);
  e.streams.erase(it);
  if (!stream.open) return;  // said when its SessionOpened is folded
  const auto current = e.stream_of_node.find(stream.node);
  if (current != e.stream_of_node.end() && current->second == number) e.stream_of_node.erase(current);
  v1::Record record;
  record.mutable_node_unreachable()->set_node(stream.node);
  record.mutable_node_unreachable()->set_session(stream.session);
  e.append(std::move(record), out);
}

void Engine::Impl::session_folded(const v1::SessionOpened& body, Output* out) {
  // Another session of this node that we held is superseded.
  if (const auto held = stream_of_node.find(body.node()); held != stream_of_node.end()) {
    const uint64_t before = held->second;
    if (streams.at(before).session != body.session())
      refuse_stream(before, "superseded: the node has opened a newer session", out);
  }
  if (body.server() != options.session) return;
  for (auto& [number, stream] : streams) {
    if (stream.session != body.session()) continue;
    stream.open = true;
    stream_of_node[body.node()] = number;
    v1::ServerMessage welcome;
    welcome.mutable_welcome()->set_cell(options.cell);
    welcome.mutable_welcome()->set_session(body.session());
    welcome.mutable_welcome()->set_heartbeat_ms(std::max<int64_t>(200, state.meta.lease_ms() / 4));
    out->orders.push_back({number, std::move(welcome)});
    for (const v1::TaskPresent& task : stream.hello.tasks()) order_stale(number, task.member(), out);
    stream.hello.Clear();
    const std::set<std::pair<GangKey, uint32_t>> members = state.nodes.at(body.node()).members;
    for (const auto& [key, rank] : members) {
      const Job& job = *state.find(key);
      std::optional<v1::JobSpec> spec;
      if (const auto before = told.find(key); before != told.end() && rank < before->second.kinds.size())
        before->second.kinds[rank] = 0;
      order_member(job, rank, number, &spec, out);
    }
    return;
  }
  // The stream has gone since.
  v1::Record record;
  record.mutable_node_unreachable()->set_node(body.node());
  record.mutable_node_unreachable()->set_session(body.session());
  append(std::move(record), out);
}

// What an agent still has of members that no longer live: stop it, then forget it.
void Engine::Impl::order_stale(uint64_t number, const v1::MemberRef& ref, Output* out) {
  const Job* job = state.find({ref.job(), ref.element()});
  const bool lives = job != nullptr && holds_places(job->state.phase()) &&
                     job->state.attempt().fence().position() == ref.fence().position() &&
                     job->state.attempt().fence().nonce() == ref.fence().nonce() &&
                     ref.rank() < job->info->members;
  if (lives) {
    const v1::MemberPhase phase = job->state.attempt().members(static_cast<int>(ref.rank())).phase();
    if (phase != v1::MEMBER_EXITED && phase != v1::MEMBER_LOST) return;
  }
  v1::ServerMessage stop;
  *stop.mutable_stop()->mutable_member() = ref;
  stop.mutable_stop()->set_grace_ms(10'000);
  stop.mutable_stop()->set_signal("TERM");
  stop.mutable_stop()->set_reason(v1::NODE_LOST);
  out->orders.push_back({number, std::move(stop)});
  v1::ServerMessage forget;
  *forget.mutable_forget()->mutable_member() = ref;
  out->orders.push_back({number, std::move(forget)});
}

// The log says that a node is out of reach while its stream is open here: the agent opens a new session.
void Engine::Impl::close_declared_gone(const std::string& name, Output* out) {
  const auto held = stream_of_node.find(name);
  const v1::NodeState& node = state.nodes.at(name).state;
  if (held == stream_of_node.end() || !(node.unreachable() || node.lost())) return;
  refuse_stream(held->second, "the node was declared out of reach; open a new session", out);
}

// Sessions of ours whose stream has gone without a record that says so (it could not be appended then).
void Engine::Impl::look_over_sessions(Output* out) {
  if (sessions_position == state.meta.tick_position()) return;
  sessions_position = state.meta.tick_position();
  for (const auto& [name, node] : state.nodes) {
    if (node.state.server() != options.session || node.state.unreachable() || node.state.lost()) continue;
    if (stream_of_node.contains(name)) continue;
    v1::Record record;
    record.mutable_node_unreachable()->set_node(name);
    record.mutable_node_unreachable()->set_session(node.state.session());
    decide(absl::StrCat("unreachable/", name), std::move(record), out);
  }
}

// A server that reads no Ticks can do nothing for its agents: they go to another, or come back when it is in
// touch.
void Engine::Impl::leave_when_cut_off(Output* out) {
  if (now_ms - tick_heard_ms < 10 * state.meta.lease_ms()) return;
  const std::map<std::string, uint64_t> held = stream_of_node;
  for (const auto& [node, stream] : held)
    refuse_stream(stream, "this server is cut off from the log; try another", out);
}

void Engine::Impl::orders_for(const Effects& effects, Output* out) {
  for (const std::string& node : effects.nodes) close_declared_gone(node, out);
  for (size_t i = 0; i < effects.gangs.size(); ++i) {
    if (std::find(effects.gangs.begin() + static_cast<long>(i) + 1, effects.gangs.end(), effects.gangs[i]) !=
        effects.gangs.end())
      continue;  // said once, for the last change
    const Job* job = state.find(effects.gangs[i]);
    if (job == nullptr) job = state.recently_ended(effects.gangs[i]);
    if (job == nullptr || !job->state.has_attempt() || job->is_array()) continue;
    if (holds_places(job->state.phase())) {
      order_gang(*job, out);
      continue;
    }
    told.erase(job->key());
    if (job->state.attempt().ended_ms() == state.meta.cell_ms()) {
      order_ended(*job, out);
    }
  }
}

void Engine::Impl::order_gang(const Job& job, Output* out) {
  std::optional<v1::JobSpec> spec;
  for (uint32_t rank = 0; rank < job.info->members; ++rank) {
    const auto stream = stream_of_node.find(job.state.attempt().members(static_cast<int>(rank)).node());
    if (stream != stream_of_node.end()) order_member(job, rank, stream->second, &spec, out);
  }
}

// The attempt is over and its end is in the log: its members may be forgotten.
void Engine::Impl::order_ended(const Job& job, Output* out) {
  for (uint32_t rank = 0; rank < job.info->members; ++rank) {
    const auto stream = stream_of_node.find(job.state.attempt().members(static_cast<int>(rank)).node());
    if (stream == stream_of_node.end()) continue;
    v1::ServerMessage message;
    *message.mutable_forget()->mutable_member() = member_ref(job, rank);
    out->orders.push_back({stream->second, std::move(message)});
  }
}

// What the state wants of a member: 0 nothing, 1 prepare, 2 stop, 2 + run: start.
static uint32_t wanted_of(const Job& job, const v1::MemberState& member) {
  if (member.phase() == v1::MEMBER_EXITED || member.phase() == v1::MEMBER_LOST) return 0;
  if (job.state.phase() == v1::STOPPING) return 2;
  if (member.phase() == v1::MEMBER_PLACED) return 1;
  return member.phase() == v1::MEMBER_PREPARED && barrier_passed(job) ? 2 + member.run() : 0;
}

void Engine::Impl::order_member(const Job& job, uint32_t rank, uint64_t stream,
                                std::optional<v1::JobSpec>* spec, Output* out) {
  const v1::AttemptState& attempt = job.state.attempt();
  const uint32_t wanted = wanted_of(job, attempt.members(static_cast<int>(rank)));
  Told& before = told[job.key()];
  if (before.fence != attempt.fence().position()) before = {attempt.fence().position(), {}};
  before.kinds.resize(job.info->members);
  if (wanted == 0 || before.kinds[rank] == wanted) return;
  before.kinds[rank] = wanted;
  if (!*spec) *spec = job.info->parse();
  v1::ServerMessage message;
  if (wanted == 2) {
    *message.mutable_stop()->mutable_member() = member_ref(job, rank);
    message.mutable_stop()->set_grace_ms(job.info->grace_ms);
    message.mutable_stop()->set_signal((*spec)->signal());
    message.mutable_stop()->set_reason(attempt.reason());
  } else if (wanted == 1) {
    *message.mutable_prepare() = prepare_order(state, job, **spec, rank);
  } else {
    *message.mutable_start() = start_order(job, **spec, rank);
  }
  out->orders.push_back({stream, std::move(message)});
}

}  // namespace muster::queue
