// Why a gang waits, in words with numbers, each with what would remedy it. Counted when asked.
#pragma once

#include "scheduler/planner.h"
#include "scheduler/view.h"

namespace muster::scheduler {

Explanation explain_gang(const PendingGang& gang, const Cluster& cluster, const Queues& queues,
                         int64_t now_ms);

// Whether no set of the nodes that exist could hold it, whatever ended: only where that is certain. False
// while there are no nodes at all: what will join is not known. `emptied` is unchanged afterwards.
bool never_fits(const Shape& shape, View& emptied, uint64_t& steps);

}  // namespace muster::scheduler
