// One gang tried whole: its queue's rules and a place for every member. What a round does for each gang, and
// what an explanation repeats.
#pragma once

#include <optional>

#include "scheduler/placement.h"
#include "scheduler/planner.h"
#include "scheduler/queues.h"
#include "scheduler/view.h"

namespace muster::scheduler {

// Why a try came to nothing, and what would have to change.
struct Failure {
  ReasonCode reason = ReasonCode::kNoCapacity;
  bool needs_cluster = true;
  bool needs_queues = false;
  std::optional<QueueBlock> block;  // the queue's rule, if one was in the way
};

// On success the places are taken on the view. `rosters`: of this view and round, or null. A model that a
// queue has no more of is avoided and the rest tried again.
std::optional<GangFit> try_gang(const Shape& shape, const Resources& total, View& view, const Queues& queues,
                                Rosters* rosters, Failure& failure, uint64_t& steps);

}  // namespace muster::scheduler
