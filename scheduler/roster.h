// For a shape that is placed again and again in one round: the nodes with room for its members, the best
// first, kept up to date with what the round takes. Without it each gang would look at all nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scheduler/request.h"
#include "scheduler/view.h"

namespace muster::scheduler {

// Smaller is better: labels it would rather have, a node without GPUs for a member without, the least left
// over.
using Score = std::tuple<uint32_t, bool, int64_t, int64_t, NodeId>;

struct Candidate {
  Score score;
  NodeId node;
  uint32_t room;
};

// A heap in which an entry may be out of date: the one who takes the best looks whether it still holds.
struct Roster {
  std::vector<Candidate> heap;
  size_t touched_seen = 0;  // of View::touched()
};

// The rosters of one round. A shape gets one at its second gang, and only so many shapes do: a roster costs
// as much memory as there are nodes.
class Rosters {
 public:
  static constexpr size_t kRostersMax = 64;

  // Null: look at all nodes. `fresh`: it is empty, fill it.
  Roster* find(const Shape& shape, size_t task, bool& fresh);

 private:
  struct Use {
    bool asked = false;
    bool made = false;
    Roster roster;
  };
  absl::flat_hash_map<std::pair<const Shape*, size_t>, std::unique_ptr<Use>> uses_;
  size_t made_ = 0;
};

}  // namespace muster::scheduler
