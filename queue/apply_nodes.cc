// Nodes: their sessions, and when one is out of reach, lost, drained or set aside.
#include <algorithm>
#include <vector>

#include "queue/fold.h"

namespace muster::queue {
namespace {

// Members placed there, in order; a copy, since ending a gang changes the set.
std::vector<std::pair<GangKey, uint32_t>> members_of(const NodeEntry& node) {
  return {node.members.begin(), node.members.end()};
}

void lose_members(Fold& fold, const NodeEntry& node) {
  for (const auto& [key, rank] : members_of(node)) {
    fold.state.note_event(key.job);
    if (Job* job = fold.state.find(key)) member_lost(fold, *job, rank);
  }
}

Outcome check_session(Fold& fold, const std::string& name, uint64_t session, NodeEntry** out) {
  const auto it = fold.state.nodes.find(name);
  if (it == fold.state.nodes.end())
    return refuse(absl::StatusCode::kNotFound, absl::StrCat("no node '", name, "'"));
  if (it->second.state.session() != session)
    return refuse(absl::StrCat("node '", name, "' has a newer session"));
  *out = &it->second;
  return {};
}

bool same(const v1::NodeDescription& a, const v1::NodeDescription& b) {
  return entity_bytes(a) == entity_bytes(b);
}

}  // namespace

int64_t lost_at_ms(const State& state, const NodeEntry& node) {
  int64_t out = state.meta.node_lost_ms();
  // A gang with stop_after stops itself; its places count as lost only when it certainly has.
  for (const auto& [key, rank] : node.members) {
    const Job* job = state.find(key);
    if (job->info->stop_after_ms == 0) continue;
    out = std::max(out, job->info->stop_after_ms + job->info->grace_ms + 11 * state.meta.lease_ms());
  }
  return node.state.unreachable_ms() + out;
}

Outcome apply_session_opened(Fold& fold, const v1::SessionOpened& body) {
  NodeEntry& node = fold.state.nodes[body.node()];
  v1::NodeState& state = node.state;
  const bool fresh = state.name().empty();
  if (fresh) {
    state.set_name(body.node());
    state.set_joined_wall_ms(fold.record.wall_ms());
  }
  if (!fresh && state.incarnation() != body.incarnation()) {
    lose_members(fold, node);  // the machine was started again, or the agent's directory is another
    state.set_last_sequence(0);
  }
  state.set_incarnation(body.incarnation());
  state.set_session(body.session());
  state.set_server(body.server());
  state.set_unreachable(false);
  state.set_lost(false);
  state.clear_unreachable_ms();
  if (fresh || !same(state.description(), body.description())) {
    *state.mutable_description() = body.description();
    state.set_revision(state.revision() + 1);
  }
  fold.state.refresh_node(node);
  fold.state.touch(node);
  fold.effects->nodes.push_back(body.node());
  return {};
}

Outcome apply_node_unreachable(Fold& fold, const v1::NodeUnreachable& body) {
  NodeEntry* node = nullptr;
  Outcome out = check_session(fold, body.node(), body.session(), &node);
  if (!out.ok()) return out;
  if (node->state.unreachable()) return out;
  node->state.set_unreachable(true);
  node->state.set_unreachable_ms(fold.now_ms());
  fold.state.refresh_node(*node);
  fold.state.touch(*node);
  fold.effects->nodes.push_back(body.node());
  for (const auto& [key, rank] : node->members) fold.state.note_event(key.job);
  return out;
}

Outcome apply_node_lost(Fold& fold, const v1::NodeLost& body) {
  NodeEntry* node = nullptr;
  if (!fold.from_owner()) return refuse("a decision of a stale term");
  Outcome out = check_session(fold, body.node(), body.session(), &node);
  if (!out.ok()) return out;
  if (!node->state.unreachable()) return refuse(absl::StrCat("node '", body.node(), "' is in reach"));
  if (node->state.lost()) return refuse(absl::StrCat("node '", body.node(), "' is lost already"));
  const int64_t due_ms = lost_at_ms(fold.state, *node);
  if (fold.now_ms() < due_ms)
    return refuse(
        absl::StrCat("node '", body.node(), "' is not lost for another ", due_ms - fold.now_ms(), " ms"));
  node->state.set_lost(true);
  fold.state.refresh_node(*node);
  fold.state.touch(*node);
  fold.effects->nodes.push_back(body.node());
  lose_members(fold, *node);
  return out;
}

Outcome apply_node_set(Fold& fold, const v1::NodeSet& body) {
  const auto it = fold.state.nodes.find(body.node());
  if (it == fold.state.nodes.end())
    return refuse(absl::StatusCode::kNotFound, absl::StrCat("no node '", body.node(), "'"));
  v1::NodeState& state = it->second.state;
  switch (body.action()) {
    case v1::NodeSet::DRAIN:
      state.set_draining(true);
      break;
    case v1::NodeSet::QUARANTINE:
      state.set_quarantined(true);
      break;
    case v1::NodeSet::UNDRAIN:
      state.set_draining(false);
      state.set_quarantined(false);
      break;
    default:
      return refuse(absl::StatusCode::kInvalidArgument, "no such action");
  }
  state.set_admin_reason(body.action() == v1::NodeSet::UNDRAIN ? "" : body.reason());
  fold.state.refresh_node(it->second);
  fold.state.touch(it->second);
  fold.effects->nodes.push_back(body.node());
  return {};
}

}  // namespace muster::queue
