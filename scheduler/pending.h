// The gangs that wait, by shape. Equal shapes are one entry, so that a hundred thousand equal gangs are one
// thing to try, and what was learned about a shape holds for all of them. A gang costs some 150 bytes and no
// allocation of its own.
//
// A shape is either open (a round should try it) or failed (it is passed over until something that could
// matter to it has changed). A gang that backs off waits outside of its shape until its time has come.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "scheduler/planner.h"

namespace muster::scheduler {

// A gang's place in line.
struct Waiting {
  int64_t line = 0;
  GangKey key;
  auto operator<=>(const Waiting&) const = default;
};

struct ShapeState {
  std::shared_ptr<const Shape> shape;
  absl::btree_set<Waiting> ready;  // those that a round may place
  size_t gangs = 0;                // ready or backing off
  ReasonCode reason = ReasonCode::kNotTried;
  bool failed = false;
  bool needs_cluster = false;  // why it failed: it may work out once the cluster has more free
  bool needs_queues = false;   //   … once a queue admits more
  bool provisional = false;    // failed beside placements that are not yet folded
  bool never_fits = false;     // as found at `never_at`
  uint64_t never_at = 0;       // the cluster's described() then, plus one; 0: not looked at
  size_t listed_at = 0;        // its place in the list it is in
  bool listed = false;
};

class PendingIndex {
 public:
  struct Gang {
    ShapeState* shape = nullptr;
    int64_t line = 0;
    int64_t not_before_ms = 0;
    uint32_t copies = 1;
    bool backing_off = false;
  };

  void add(const PendingGang& gang);
  void remove(const GangKey& key);
  const Gang* find(const GangKey& key) const;
  size_t size() const { return gangs_.size(); }

  // Time passes: what has backed off long enough is ready.
  void wake(int64_t now_ms);
  int64_t next_wake_ms() const { return backing_off_.empty() ? 0 : backing_off_.begin()->first; }

  // Shapes with ready gangs, in no order.
  const std::vector<ShapeState*>& open() const { return open_; }
  // Shapes that failed, in no order; some have no ready gang now.
  const std::vector<ShapeState*>& failed() const { return failed_; }
  void fail(ShapeState& shape);
  void reopen(ShapeState& shape);

 private:
  ShapeState* intern(const std::shared_ptr<const Shape>& shape);
  void erase(const GangKey& key, const Gang& gang);
  void relist(ShapeState& shape);
  void unlist(ShapeState& shape);

  struct ByContent {
    size_t operator()(const Shape* shape) const;
  };
  struct SameContent {
    bool operator()(const Shape* a, const Shape* b) const { return a == b || *a == *b; }
  };

  absl::flat_hash_map<GangKey, Gang> gangs_;
  absl::flat_hash_map<const Shape*, std::unique_ptr<ShapeState>, ByContent, SameContent> shapes_;
  absl::flat_hash_map<const Shape*, ShapeState*> by_pointer_;  // of the one that the entry keeps alive
  absl::btree_set<std::pair<int64_t, GangKey>> backing_off_;
  std::vector<ShapeState*> open_;
  std::vector<ShapeState*> failed_;
  int64_t now_ms_ = 0;
};

}  // namespace muster::scheduler
