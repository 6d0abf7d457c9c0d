// Places one whole gang on a view, or nothing of it. Best fit: a member goes where the least is left over, so
// that whole nodes stay whole for those who want them.
//
// For a gang of one kind of member the answer is exact: it is placed if and only if it fits. With several
// kinds a few orders are tried, the most demanding first, and then a bounded search: small gangs are decided
// exactly, and of a large one that is not placed it may stay unknown whether it could have been.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/queues.h"
#include "scheduler/request.h"
#include "scheduler/roster.h"
#include "scheduler/view.h"

namespace muster::scheduler {

struct PlacedMember {
  NodeId node = 0;
  DevicePositions devices;
};

struct GangFit {
  std::vector<PlacedMember> members;  // by rank
  Amounts models;                     // what its devices are, by model, in thousandths
};

struct PlaceOptions {
  std::set<std::string> avoid;  // models not to be used
  Rosters* rosters = nullptr;   // of this view and round; null: none
  bool* impossible = nullptr;   // where given, set when it failed: whether that is certain
};

// On success the places stay taken on the view; otherwise the view is as it was. `steps` grows by the work
// done: nodes and members looked at.
std::optional<GangFit> place_gang(View& view, const Shape& shape, const PlaceOptions& options,
                                  uint64_t& steps);

bool has_one_of(const Labels& labels, const LabelRule& rule);
// Whether the node's labels satisfy the task's require and exclude.
bool labels_admit(const TaskRequest& task, const Labels& labels);
// How many members of the task the node could take now, of at most `wanted`; per_node and labels counted.
uint32_t room_for(const View& view, const TaskRequest& task, NodeId node, uint32_t wanted);

}  // namespace muster::scheduler
