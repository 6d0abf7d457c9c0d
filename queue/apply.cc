#include "queue/apply.h"

#include <algorithm>

#include "queue/fold.h"

namespace muster::queue {
namespace {

void advance_time(State& state, int64_t timestamp_ms) {
  v1::MetaState& meta = state.meta;
  if (meta.position() >= 0) {
    const int64_t step = std::clamp<int64_t>(timestamp_ms - meta.log_ms(), 0, meta.lease_ms());
    meta.set_cell_ms(meta.cell_ms() + step);
  }
  meta.set_log_ms(timestamp_ms);
}

// At most kKeysExpiredMax a record, in (expiry, key) order, so that no record is slow.
void expire_keys(State& state, const Found& found) {
  v1::MetaState& meta = state.meta;
  if (meta.next_key_expiry_ms() == 0 || meta.next_key_expiry_ms() > meta.cell_ms()) return;
  for (const auto& [id, key] : found.expired) state.drop_key(id, key);
  meta.set_next_key_expiry_ms(found.next_expiry_ms);
}

v1::ServerState* writer_of(State& state, const v1::Record& record) {
  for (v1::ServerState& server : *state.meta.mutable_servers()) {
    if (server.session() == record.writer().session()) return &server;
  }
  return nullptr;
}

// A server's records are in the log in the order of its sequence: one that comes again changes nothing.
Outcome check_writer(State& state, const LogInput& input) {
  v1::ServerState* server = writer_of(state, *input.record);
  if (server == nullptr) {
    if (input.record->has_log_opened() || input.record->has_server_joined()) return {};
    return refuse("its server has not joined, or was forgotten after a long silence");
  }
  if (input.record->writer().sequence() <= server->last_sequence()) {
    Outcome out = refuse(absl::StatusCode::kAlreadyExists, "the record arrived twice");
    out.duplicate = true;
    return out;
  }
  return {};
}

void note_writer(State& state, const LogInput& input) {
  v1::ServerState* server = writer_of(state, *input.record);
  if (server == nullptr) return;
  server->set_heard_ms(state.meta.cell_ms());
  server->set_last_position(input.position);
  server->set_last_sequence(input.record->writer().sequence());
}

Outcome apply_body(Fold& fold) {
  const v1::Record& r = fold.record;
  switch (r.body_case()) {
    case v1::Record::kLogOpened:
      return apply_log_opened(fold, r.log_opened());
    case v1::Record::kServerJoined:
      return apply_server_joined(fold, r.server_joined());
    case v1::Record::kServerBeat:
      return apply_server_beat(fold, r.server_beat());
    case v1::Record::kTermClaimed:
      return apply_term_claimed(fold, r.term_claimed());
    case v1::Record::kTick:
      return apply_tick(fold, r.tick());
    case v1::Record::kFormatActivated:
      return apply_format_activated(fold, r.format_activated());
    case v1::Record::kDigestRecorded:
      return {};  // compared by the engine, which keeps its own
    case v1::Record::kPolicySet:
      return apply_policy_set(fold, r.policy_set());
    case v1::Record::kQueueSet:
      return apply_queue_set(fold, r.queue_set());
    case v1::Record::kQueueRemoved:
      return apply_queue_removed(fold, r.queue_removed());
    case v1::Record::kSubmitted:
      return apply_submitted(fold, r.submitted());
    case v1::Record::kCancelRequested:
      return apply_cancel(fold, r.cancel_requested());
    case v1::Record::kHoldRequested:
      return apply_hold(fold, r.hold_requested().job(), r.hold_requested().element(), true);
    case v1::Record::kReleaseRequested:
      return apply_hold(fold, r.release_requested().job(), r.release_requested().element(), false);
    case v1::Record::kRequeueRequested:
      return apply_requeue(fold, r.requeue_requested());
    case v1::Record::kUpdated:
      return apply_updated(fold, r.updated());
    case v1::Record::kSessionOpened:
      return apply_session_opened(fold, r.session_opened());
    case v1::Record::kNodeUnreachable:
      return apply_node_unreachable(fold, r.node_unreachable());
    case v1::Record::kNodeLost:
      return apply_node_lost(fold, r.node_lost());
    case v1::Record::kNodeSet:
      return apply_node_set(fold, r.node_set());
    case v1::Record::kPlaced:
      return apply_placed(fold, r.placed());
    case v1::Record::kGangStopped:
      return apply_gang_stopped(fold, r.gang_stopped());
    case v1::Record::kMemberRestarted:
      return apply_member_restarted(fold, r.member_restarted());
    case v1::Record::kPrepared:
      return apply_prepared(fold, r.prepared());
    case v1::Record::kPrepareFailed:
      return apply_prepare_failed(fold, r.prepare_failed());
    case v1::Record::kStarted:
      return apply_started(fold, r.started());
    case v1::Record::kExited:
      return apply_exited(fold, r.exited());
    case v1::Record::BODY_NOT_SET:
      break;
  }
  return refuse("the record has no body");
}

}  // namespace

Outcome apply(State& state, const LogInput& input, const Found& found, Effects* effects) {
  advance_time(state, input.timestamp_ms);
  state.meta.set_position(input.position);
  state.chain = input.chain;
  expire_keys(state, found);
  Outcome out;
  if (input.record == nullptr) {
    state.meta.set_undecodable(state.meta.undecodable() + 1);
    out = refuse(absl::StatusCode::kInvalidArgument, "not an envelope of this cell");
  } else if (state.meta.cell().empty() && !input.record->has_log_opened()) {
    out = refuse("the log is not open: its first record must be LogOpened");
  } else {
    Fold fold{state, input, *input.record, found, effects};
    out = check_writer(state, input);
    if (out.ok()) {
      out = apply_body(fold);
      note_writer(state, input);
    }
  }
  if (!out.ok()) state.meta.set_refused(state.meta.refused() + 1);
  out.position = input.position;
  return out;
}

}  // namespace muster::queue
