#include "scheduler/explain.h"

#include "absl/strings/str_cat.h"
#include "scheduler/placement.h"

namespace muster::scheduler {
namespace {

void explain_queue(const QueueBlock& block, Explanation& out) {
  out.code = block.never ? ReasonCode::kNeverQueue : ReasonCode::kQueueLimit;
  out.never = block.never;
  const char* rule = block.limit ? "limit" : "quota";
  out.blockers.push_back(
      {block.limit ? "QUEUE_LIMIT" : "QUEUE_QUOTA",
       absl::StrCat("queue ", block.queue, " has a ", rule, " of ", block.allowed, " ", block.resource, ": ",
                    block.used, " in use, ", block.wanted, " wanted"),
       absl::StrCat("raise it: `muster queue set ", block.queue, " ", rule, ".", block.resource, "=…`"), 1});
}

}  // namespace

bool never_fits(const Shape& shape, View& emptied, uint64_t& steps) {
  if (emptied.nodes().empty()) return false;
  const size_t mark = emptied.mark();
  const bool fits = place_gang(emptied, shape, {}, steps).has_value();
  emptied.roll_back(mark);
  return !fits;
}

Explanation explain_gang(const PendingGang& gang, const Cluster& cluster, const Queues& queues,
                         int64_t now_ms) {
  Explanation out;
  const Shape& shape = *gang.shape;
  uint64_t steps = 0;
  View emptied = View::emptied(cluster);
  View free = View::free_of(cluster);
  if (emptied.nodes().empty()) {
    out.code = ReasonCode::kNoCapacity;
    out.blockers.push_back({"NO_NODES", "no node has joined yet", "start one with `muster agent`", 0});
  } else if (never_fits(shape, emptied, steps)) {
    out.code = ReasonCode::kNeverFits;
    out.never = true;
    out.blockers.push_back({"TOO_BIG", "the nodes that exist could not hold it, even if they were all empty",
                            "ask for less, or add nodes", static_cast<int64_t>(emptied.nodes().size())});
  } else if (const auto block = queues.blocks(shape.queue, shape.total(), {}, shape.preemptible)) {
    explain_queue(*block, out);
  } else if (!place_gang(free, shape, {}, steps)) {
    out.code = ReasonCode::kNoCapacity;
    out.blockers.push_back({"NODES_BUSY", "not enough is free on the nodes that could hold it",
                            "wait until running work ends, or add nodes",
                            static_cast<int64_t>(free.nodes().size())});
  }
  if (!out.never && gang.not_before_ms > now_ms) {
    out.code = ReasonCode::kBackOff;
    out.blockers.push_back(
        {"BACK_OFF", absl::StrCat("backs off for ", gang.not_before_ms - now_ms, " ms more"), "wait", 1});
  }
  out.summary = out.blockers.empty() ? "fits now: the next round places it" : out.blockers.front().text;
  return out;
}

}  // namespace muster::scheduler
