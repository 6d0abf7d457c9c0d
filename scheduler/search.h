// The last resort for gangs of several kinds of members: every way of spreading them over the nodes, within a
// bounded number of steps. Small cases are decided exactly; large ones may stay undecided.
#pragma once

#include "scheduler/attempt.h"

namespace muster::scheduler {

enum class Verdict { kFits, kNever, kUndecided };

constexpr uint64_t kSearchSteps = 20'000;
constexpr size_t kSearchNodesMax = 512;  // it goes as deep as there are nodes, for each task

// kFits: the places are taken. Otherwise the view is as it was; kNever: there is no way at all.
Verdict search(Attempt& attempt, const Domain* domain);

}  // namespace muster::scheduler
