#include "scheduler/planner.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/admission.h"
#include "scheduler/explain.h"
#include "scheduler/pending.h"
#include "scheduler/view.h"

namespace muster::scheduler {
namespace {

// What one round decides on, while the cluster and the queues stay as they are.
struct Scratch {
  const Cluster& cluster;
  const Queues& queues_before;
  View& view;
  std::optional<View>& emptied;  // made when first needed, kept while the nodes stay as described
  Rosters rosters;
  std::optional<Queues> queues;  // with the round's placements in use; absent before the first

  const Queues& used() const { return queues ? *queues : queues_before; }
  void use(const Shape& shape, const Resources& total, const Amounts& models) {
    if (!queues) queues = queues_before;
    queues->use(shape.queue, total, models, shape.preemptible);
  }
  View& all_free() {
    if (!emptied) emptied.emplace(View(cluster).emptied());
    return *emptied;
  }
};

// Where a shape's next gang stands in the round's order.
struct Head {
  ShapeState* shape;
  absl::btree_set<Waiting>::const_iterator next;

  bool after(const Head& other) const {
    const int32_t mine = shape->shape->priority, theirs = other.shape->shape->priority;
    if (mine != theirs) return mine < theirs;
    return *next > *other.next;
  }
};

}  // namespace

struct Planner::Impl {
  PendingIndex pending;
  std::optional<View> view;     // of the cluster as it was at the last round that needed it
  std::optional<View> emptied;  // of the same nodes
  // The counters of what it was tried against, at the last round.
  struct {
    uint64_t described = 0, cluster_freed = 0, ruled = 0, queues_freed = 0;
  } seen;
  // The last round's placements are all folded once the cluster has held so many places. What failed beside
  // them is provisional until then: if one comes to nothing, it is tried again although nothing was freed.
  uint64_t expected_held = 0;
  bool any_provisional = false;

  bool refused(const Cluster& cluster) const { return any_provisional && cluster.held() != expected_held; }
  void look_at(const Cluster& cluster);
  bool news(const Cluster& cluster, const Queues& queues) const;
  void learn(const Cluster& cluster, const Queues& queues);
  void record_failure(ShapeState& shape, const Failure& failure, Scratch& scratch, bool provisional,
                      uint64_t& steps);
  bool place_copies(const Head& head, Scratch& scratch, const RoundLimits& limits, Round& round,
                    size_t& members);
  void run(Scratch& scratch, const RoundLimits& limits, Round& round);
};

void Planner::Impl::look_at(const Cluster& cluster) {
  if (view && view->refresh(cluster)) return;
  view.emplace(cluster);
  emptied.reset();
}

bool Planner::Impl::news(const Cluster& cluster, const Queues& queues) const {
  return cluster.described() != seen.described || cluster.freed() != seen.cluster_freed ||
         queues.ruled() != seen.ruled || queues.freed() != seen.queues_freed || refused(cluster);
}

// Reopens the failed shapes to which something that has changed could matter.
void Planner::Impl::learn(const Cluster& cluster, const Queues& queues) {
  const bool anything = news(cluster, queues);
  const bool all = cluster.described() != seen.described || queues.ruled() != seen.ruled;
  const bool cluster_more = cluster.freed() != seen.cluster_freed;
  const bool queues_more = queues.freed() != seen.queues_freed;
  const bool undone = refused(cluster);
  seen = {cluster.described(), cluster.freed(), queues.ruled(), queues.freed()};
  any_provisional = false;
  if (!anything) return;
  std::vector<ShapeState*> again;
  for (ShapeState* shape : pending.failed()) {
    const bool matters = (cluster_more && shape->needs_cluster) || (queues_more && shape->needs_queues) ||
                         (undone && shape->provisional);
    if (all || (matters && shape->reason != ReasonCode::kNeverFits)) again.push_back(shape);
  }
  for (ShapeState* shape : again) pending.reopen(*shape);
}

void Planner::Impl::record_failure(ShapeState& shape, const Failure& failure, Scratch& scratch,
                                   bool provisional, uint64_t& steps) {
  shape.reason = failure.reason;
  shape.needs_cluster = failure.needs_cluster;
  shape.needs_queues = failure.needs_queues;
  shape.provisional = provisional;
  any_provisional = any_provisional || provisional;
  const uint64_t now = scratch.cluster.described() + 1;
  if (shape.never_at != now) {
    shape.never_fits = never_fits(*shape.shape, scratch.all_free(), steps);
    shape.never_at = now;
  }
  if (shape.never_fits) shape.reason = ReasonCode::kNeverFits;
  pending.fail(shape);
}

// Places the gang, or an array's elements one after the other. False once the shape has failed or the round
// is full.
bool Planner::Impl::place_copies(const Head& head, Scratch& scratch, const RoundLimits& limits, Round& round,
                                 size_t& members) {
  ShapeState& state = *head.shape;
  const Shape& shape = *state.shape;
  const Resources total = shape.total();
  const uint32_t gang_members = shape.members();
  const uint32_t copies = pending.find(head.next->key)->copies;
  for (uint32_t i = 0; i < copies; ++i) {
    const bool full = round.placements.size() >= limits.decisions ||
                      (!round.placements.empty() && members + gang_members > limits.members) ||
                      round.steps >= limits.steps;
    if (full) {
      round.more = true;
      return false;
    }
    Failure failure;
    const std::optional<GangFit> fit =
        try_gang(shape, total, scratch.view, scratch.used(), &scratch.rosters, failure, round.steps);
    if (!fit) {
      record_failure(state, failure, scratch, !round.placements.empty(), round.steps);
      return false;
    }
    scratch.use(shape, total, fit->models);
    members += gang_members;
    Placement& placement = round.placements.emplace_back();
    placement.key = head.next->key;
    placement.members.reserve(gang_members);
    for (const PlacedMember& member : fit->members) {
      const NodeView& node = scratch.view.nodes()[member.node];
      MemberPlace& place = placement.members.emplace_back();
      place.node = node.name();
      for (uint16_t position : member.devices) place.devices.push_back(node.devices[position].index);
    }
  }
  return true;
}

void Planner::Impl::run(Scratch& scratch, const RoundLimits& limits, Round& round) {
  std::vector<Head> heads;
  for (ShapeState* shape : pending.open()) heads.push_back({shape, shape->ready.begin()});
  const auto later = [](const Head& a, const Head& b) { return a.after(b); };
  std::make_heap(heads.begin(), heads.end(), later);
  size_t members = 0;
  while (!heads.empty() && !round.more) {
    std::pop_heap(heads.begin(), heads.end(), later);
    Head& head = heads.back();
    if (head.next == head.shape->ready.begin()) ++round.shapes_tried;
    if (!place_copies(head, scratch, limits, round, members) || ++head.next == head.shape->ready.end()) {
      heads.pop_back();
    } else {
      std::push_heap(heads.begin(), heads.end(), later);
    }
  }
  expected_held = scratch.cluster.held() + members;
}

Planner::Planner() : impl_(new Impl) {}
Planner::~Planner() {
  delete impl_;
}
Planner::Planner(Planner&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
Planner& Planner::operator=(Planner&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

void Planner::add(PendingGang gang) {
  impl_->pending.add(gang);
}
void Planner::remove(const GangKey& key) {
  impl_->pending.remove(key);
}
bool Planner::waits(const GangKey& key) const {
  return impl_->pending.find(key) != nullptr;
}
size_t Planner::pending() const {
  return impl_->pending.size();
}

Round Planner::plan(const Cluster& cluster, const Queues& queues, int64_t now_ms, const RoundLimits& limits) {
  Round round;
  impl_->learn(cluster, queues);
  impl_->pending.wake(now_ms);
  if (!impl_->pending.open().empty()) {
    impl_->look_at(cluster);
    Scratch scratch{cluster, queues, *impl_->view, impl_->emptied};
    impl_->run(scratch, limits, round);
    impl_->view->roll_back(0);
    impl_->view->forget_touched();
  }
  round.wake_at_ms = impl_->pending.next_wake_ms();
  return round;
}

int64_t Planner::wake_at_ms() const {
  return impl_->pending.next_wake_ms();
}

bool Planner::due(const Cluster& cluster, const Queues& queues, int64_t now_ms) const {
  const PendingIndex& pending = impl_->pending;
  if (!pending.open().empty()) return true;
  const int64_t wake_ms = pending.next_wake_ms();
  if (wake_ms != 0 && wake_ms <= now_ms) return true;
  return !pending.failed().empty() && impl_->news(cluster, queues);
}

Explanation Planner::explain(const PendingGang& gang, const Cluster& cluster, const Queues& queues,
                             int64_t now_ms) const {
  return explain_gang(gang, cluster, queues, now_ms);
}

ReasonCode Planner::reason(const GangKey& key) const {
  const PendingIndex::Gang* gang = impl_->pending.find(key);
  if (gang == nullptr) return ReasonCode::kNotTried;
  return gang->backing_off ? ReasonCode::kBackOff : gang->shape->reason;
}

}  // namespace muster::scheduler
