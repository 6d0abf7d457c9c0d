// The cell itself: its opening, servers, terms, Ticks, policy and queues.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "queue/fold.h"

namespace muster::queue {
namespace {

constexpr int kServersKept = 64;
constexpr int64_t kServerSilentLeases = 10;

v1::ServerState* find_server(State& state, uint64_t session) {
  for (v1::ServerState& server : *state.meta.mutable_servers()) {
    if (server.session() == session) return &server;
  }
  return nullptr;
}

// Two servers whose chains differ at the same Tick have read different logs.
Outcome compare_chain(const State& state, int64_t tick_position, const std::string& chain) {
  if (tick_position < 0 || tick_position != state.meta.tick_position() || chain == state.meta.tick_chain())
    return {};
  return refuse(absl::StatusCode::kDataLoss,
                absl::StrCat("the log was rewritten behind this state: at the Tick at position ",
                             tick_position, " the writer's chain is ", Chain::from_bytes(chain).hex(),
                             " and this server's is ", Chain::from_bytes(state.meta.tick_chain()).hex(),
                             "; set the state directory aside and let it fold the log anew"));
}

}  // namespace

Outcome apply_log_opened(Fold& fold, const v1::LogOpened& body) {
  v1::MetaState& meta = fold.state.meta;
  if (!meta.cell().empty()) return refuse("the log is open already");
  meta.set_cell(fold.record.cell());
  meta.set_base(body.base());
  meta.set_lease_ms(body.lease_ms());
  meta.set_next_job(1);
  meta.set_format(1);
  return {};
}

Outcome apply_server_joined(Fold& fold, const v1::ServerJoined& body) {
  v1::MetaState& meta = fold.state.meta;
  if (find_server(fold.state, body.session()) != nullptr)
    return refuse("this server session has joined already");
  // Servers that fell silent long ago are forgotten, but for the owner of the term.
  const int64_t silent = fold.now_ms() - kServerSilentLeases * meta.lease_ms();
  auto* servers = meta.mutable_servers();
  servers->erase(std::remove_if(servers->begin(), servers->end(),
                                [&](const v1::ServerState& server) {
                                  return server.session() != meta.owner() &&
                                         (server.heard_ms() < silent || server.server() == body.server());
                                }),
                 servers->end());
  if (servers->size() >= kServersKept)
    return refuse(absl::StrCat("the cell has ", kServersKept, " servers already"));
  v1::ServerState* added = servers->Add();
  added->set_session(body.session());
  added->set_server(body.server());
  added->set_address(body.address());
  *added->mutable_formats() = body.formats();
  return {};
}

Outcome apply_server_beat(Fold& fold, const v1::ServerBeat& body) {
  return compare_chain(fold.state, body.tick_position(), body.chain());
}

Outcome apply_term_claimed(Fold& fold, const v1::TermClaimed& body) {
  v1::MetaState& meta = fold.state.meta;
  const uint64_t claimant = fold.record.writer().session();
  const bool autoscaler = body.scope() == "autoscaler";
  const uint64_t term = autoscaler ? meta.autoscaler_term() : meta.term();
  const uint64_t owner = autoscaler ? meta.autoscaler_owner() : meta.owner();
  if (body.term() != term + 1)
    return refuse(absl::StrCat("term ", body.term(), " was claimed, the next is ", term + 1));
  if (find_server(fold.state, claimant) == nullptr) return refuse("the claimant has not joined");
  const v1::ServerState* known = find_server(fold.state, owner);
  if (known != nullptr && known->last_position() > body.seen())
    return refuse(absl::StrCat("the owner wrote at position ", known->last_position(), ", after ",
                               body.seen(), " that the claimant had seen"));
  if (autoscaler) {
    meta.set_autoscaler_term(body.term());
    meta.set_autoscaler_owner(claimant);
  } else {
    meta.set_term(body.term());
    meta.set_owner(claimant);
  }
  return {};
}

Outcome apply_tick(Fold& fold, const v1::Tick& body) {
  if (!fold.from_owner()) return refuse("a Tick of a stale term");
  Outcome out = compare_chain(fold.state, body.tick_position(), body.chain());
  fold.state.meta.set_tick_position(fold.input.position);
  fold.state.meta.set_tick_chain(fold.input.chain.bytes());
  return out;
}

Outcome apply_format_activated(Fold& fold, const v1::FormatActivated& body) {
  v1::MetaState& meta = fold.state.meta;
  if (!fold.from_owner()) return refuse("a decision of a stale term");
  if (body.format() != meta.format() + 1)
    return refuse(absl::StrCat("format ", body.format(), " can't follow format ", meta.format()));
  for (const v1::ServerState& server : meta.servers()) {
    if (std::find(server.formats().begin(), server.formats().end(), body.format()) == server.formats().end())
      return refuse(absl::StrCat("server ", server.server(), " can't read format ", body.format()));
  }
  meta.set_format(body.format());
  return {};
}

Outcome apply_policy_set(Fold& fold, const v1::PolicySet& body) {
  int64_t value = 0;
  if (body.key() != "node_lost")
    return refuse(absl::StatusCode::kInvalidArgument,
                  absl::StrCat("policy key '", body.key(), "' is unknown; this release has: node_lost"));
  if (!absl::SimpleAtoi(body.value(), &value) || value < fold.state.meta.lease_ms())
    return refuse(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("node_lost: ", body.value(), " ms is not allowed; it must be at least the lease, ",
                     fold.state.meta.lease_ms(), " ms"));
  fold.state.meta.set_node_lost_ms(value);
  return {};
}

Outcome apply_queue_set(Fold& fold, const v1::QueueSet& body) {
  const v1::QueueSpec& spec = body.queue();
  *fold.state.queues[spec.name()].mutable_spec() = spec;
  fold.state.usage.set(spec.name(), spec.weight(), amounts_of(spec.quota()), amounts_of(spec.limit()));
  fold.state.touch_queue(spec.name());
  return {};
}

Outcome apply_queue_removed(Fold& fold, const v1::QueueRemoved& body) {
  State& state = fold.state;
  if (!state.queues.contains(body.name()))
    return refuse(absl::StatusCode::kNotFound, absl::StrCat("no queue '", body.name(), "' has been set"));
  if (const auto live = state.counts.find(body.name()); live != state.counts.end())
    return refuse(absl::StrCat("queue '", body.name(), "' has ", live->second.pending, " pending and ",
                               live->second.running, " running gangs; cancel or move them first"));
  state.queues.erase(body.name());
  state.usage.remove(body.name());
  state.touch_queue(body.name());
  return {};
}

}  // namespace muster::queue
