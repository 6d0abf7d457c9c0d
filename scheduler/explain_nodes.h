// What stands in a gang's way on the nodes: for ever (labels, models, sizes), or for now (busy, out of
// service).
#pragma once

#include <optional>
#include <vector>

#include "scheduler/planner.h"
#include "scheduler/view.h"

namespace muster::scheduler {

// Why no set of the nodes that exist could ever hold it. For a gang that place_gang() does not fit on
// `emptied`.
std::vector<Blocker> never_blockers(const Shape& shape, View& emptied);

// Why it does not fit on what is free now although it would on the emptied nodes.
std::vector<Blocker> busy_blockers(const Shape& shape, View& emptied, View& free);

// Which value of the pack label comes nearest, where the gang is bound to one; `now`: the view is of what is
// free.
std::optional<Blocker> pack_blocker(const Shape& shape, View& view, bool now);

}  // namespace muster::scheduler
