// One try at placing one gang on a view: which nodes have room for how many members, and best fit among them.
// It decides neither the order of tasks nor the domain; placement.cc and search.cc do.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/placement.h"
#include "scheduler/view.h"

namespace muster::scheduler {

// Which models a task may use; made once for a gang.
class Models {
 public:
  Models(const View& view, const TaskRequest& task, const std::set<std::string>& avoid);
  bool allow(ModelId model) const { return any_ || allowed_[model]; }

 private:
  bool any_ = true;
  std::vector<bool> allowed_;
};

// How many members of the task fit on the node now, at most `wanted`.
uint32_t room_on(const NodeView& node, const TaskRequest& task, const Models& models, uint32_t wanted);

class Attempt {
 public:
  // `view`, `shape` and the rosters outlive it.
  Attempt(View& view, const Shape& shape, const PlaceOptions& options, uint64_t& steps);

  // Places the tasks one after the other, all members or none. `domain`: the nodes for packed tasks; null:
  // all.
  bool place(const std::vector<size_t>& order, const Domain* domain);
  // Whether each task alone has room (packed ones in the domain), and the sum of all: what can't be is not
  // tried.
  bool may_hold(const Domain* domain);

  uint32_t room(size_t task, NodeId node, uint32_t wanted) const;
  // Puts the task's index-th member on the node, which has room for it.
  void take(size_t task, uint32_t index, NodeId node);

  View& view() { return view_; }
  const Shape& shape() const { return shape_; }
  uint64_t& steps() { return steps_; }
  GangFit fit();  // once all members are placed

 private:
  Score score_of(size_t task, NodeId node) const;
  void consider(size_t task, NodeId node, std::vector<Candidate>& out);
  void gather_domains(std::vector<Candidate>& candidates) const;
  bool place_task(size_t task, const Domain* domain);
  bool place_from(Roster& roster, bool fresh, size_t task);
  void refill(Roster& roster, bool fresh, size_t task);

  View& view_;
  const Shape& shape_;
  uint64_t& steps_;
  Rosters* rosters_;
  std::vector<Models> models_;        // by task
  std::vector<uint32_t> first_rank_;  // by task
  std::vector<PlacedMember> members_;
  std::vector<Candidate> candidates_;
};

}  // namespace muster::scheduler
