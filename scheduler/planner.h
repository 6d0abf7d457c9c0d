// The planner: gangs, nodes and queues in; placements, preemptions, reservations and reasons out. Pure and
// deterministic: no clock, no randomness, bounded by counted steps.
//
// It holds the pending gangs, indexed by shape, and what it has learned about them (which shapes failed, and
// at which state of the cluster). That memory is an index: a planner built anew from the same pending gangs
// decides the same. It never changes the cluster: its decisions are appended to the log, and the fold applies
// them. It keeps a copy of the cluster that it plans on, so it serves one Cluster object as long as it lives.
// One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/cluster.h"
#include "scheduler/queues.h"
#include "scheduler/request.h"

namespace muster::scheduler {

struct MemberPlace {
  std::string node;
  std::vector<uint32_t> devices;
};

struct Placement {
  GangKey key;  // as in PendingGang; the n-th placement of one array's key takes its n-th pending element
  std::vector<MemberPlace> members;  // by rank
};

// A gang to be stopped for another. Filled from the issue that brings preemption on.
struct Preemption {
  GangKey victim;
  GangKey preemptor;
};

// Nodes that are kept for a gang from a time on. Filled from the issue that brings backfill on.
struct Reservation {
  GangKey key;
  int64_t from_ms = 0;
  std::vector<std::string> nodes;
};

// Why a shape could not be placed: one code a shape, kept from round to round; explain() finds the numbers.
enum class ReasonCode {
  kNotTried,    // not yet looked at: a round is due
  kNoCapacity,  // would fit on nodes that exist, but not on what is free now
  kQueueLimit,  // a queue's limit or quota is reached
  kNeverFits,   // no set of nodes that exist could ever hold it, whatever ended
  kNeverQueue,  // it alone is more than its queue may ever have
  kBackOff,     // waits for its back-off
};

struct Round {
  std::vector<Placement> placements;  // in the order decided
  std::vector<Preemption> preemptions;
  std::vector<Reservation> reservations;
  int64_t wake_at_ms = 0;  // cell time at which something changes by itself (a back-off ends); 0: never
  bool more = false;       // stopped at a limit: plan again once these are folded
  uint64_t steps = 0;      // counted work: members tried on nodes
  uint64_t shapes_tried = 0;
};

struct RoundLimits {
  size_t decisions = 1000;
  size_t members = 40'000;  // keeps a round's records under 4 MB
  uint64_t steps = 20'000'000;
};

// One thing that stands in the way, with its number and what would remedy it.
struct Blocker {
  std::string code;  // NODES_BUSY, NODES_DOWN, NODES_DRAINING, GPU_MODEL, LABEL, TOO_BIG, PER_NODE, PACK,
                     // QUEUE_LIMIT, QUEUE_QUOTA, BACK_OFF, NO_NODES
  std::string text;
  std::string remedy;
  int64_t count = 0;
};
struct Explanation {
  ReasonCode code = ReasonCode::kNotTried;
  bool never = false;
  std::string summary;  // one line, for `ls`
  std::vector<Blocker> blockers;
};

class Planner {
 public:
  Planner();
  ~Planner();
  Planner(Planner&&) noexcept;
  Planner& operator=(Planner&&) noexcept;

  // Adds a waiting gang, or changes the one with this key (its place in the index moves with it).
  void add(PendingGang gang);
  void remove(const GangKey& key);
  bool waits(const GangKey& key) const;
  size_t pending() const;  // gangs, an array counting once

  // Priority, then line (FIFO), over all queues. A shape that failed is passed over until cluster.freed() or
  // queues.freed() has grown; a gang behind it that fits elsewhere still starts.
  Round plan(const Cluster& cluster, const Queues& queues, int64_t now_ms, const RoundLimits& limits);

  // Whether a round could decide anything now: something was added or freed since the last one, or a back-off
  // ended.
  bool due(const Cluster& cluster, const Queues& queues, int64_t now_ms) const;

  // When the next back-off ends, in cell time; 0: none is on.
  int64_t wake_at_ms() const;

  // What stands in the way of one gang, counted now. Bounded by the number of nodes.
  Explanation explain(const PendingGang& gang, const Cluster& cluster, const Queues& queues,
                      int64_t now_ms) const;
  // The reason that the last round left, without counting: what `ls` prints for many.
  ReasonCode reason(const GangKey& key) const;

 private:
  struct Impl;
  Impl* impl_;
};

}  // namespace muster::scheduler
