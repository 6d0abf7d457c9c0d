#include "scheduler/search.h"

#include <algorithm>

namespace muster::scheduler {
namespace {

class Search {
 public:
  Search(Attempt& attempt, const Domain* domain)
      : attempt_(attempt), tasks_(attempt.shape().tasks), domain_(domain) {}

  Verdict run() {
    if (spread(0, 0, 0)) return Verdict::kFits;
    return left_ == 0 || !exhaustive() ? Verdict::kUndecided : Verdict::kNever;
  }

 private:
  // The task's members from `placed` on, on its nodes from the given one on; then the tasks after it.
  bool spread(size_t task, size_t at, uint32_t placed) {
    if (task == tasks_.size()) return true;
    if (placed == tasks_[task].members) return spread(task + 1, 0, 0);
    const bool bound = domain_ != nullptr && tasks_[task].packed;
    if (at == (bound ? domain_->nodes.size() : attempt_.view().nodes().size()) || left_ == 0) return false;
    --left_;
    ++attempt_.steps();
    const NodeId node = bound ? domain_->nodes[at] : static_cast<NodeId>(at);
    const uint32_t room = attempt_.room(task, node, tasks_[task].members - placed);
    for (uint32_t count = room;; --count) {
      const size_t mark = attempt_.view().mark();
      for (uint32_t i = 0; i < count; ++i) attempt_.take(task, placed + i, node);
      if (spread(task, at + 1, placed + count)) return true;
      attempt_.view().roll_back(mark);
      if (count == 0) return false;
    }
  }

  // Only the number on each node is searched, not which devices: enough unless tasks compete for some models
  // of a node.
  bool exhaustive() const {
    const TaskRequest* first = nullptr;
    bool alike = true;
    for (const TaskRequest& task : tasks_) {
      if (task.each.gpus == 0) continue;
      if (first == nullptr) first = &task;
      alike = alike && task.gpu_models == first->gpu_models;
    }
    if (alike) return true;
    const auto& nodes = attempt_.view().nodes();
    return std::all_of(nodes.begin(), nodes.end(), [](const NodeView& node) {
      return std::all_of(node.devices.begin(), node.devices.end(), [&](const DeviceView& device) {
        return device.model == node.devices.front().model;
      });
    });
  }

  Attempt& attempt_;
  const std::vector<TaskRequest>& tasks_;
  const Domain* domain_;
  uint64_t left_ = kSearchSteps;
};

}  // namespace

Verdict search(Attempt& attempt, const Domain* domain) {
  if (attempt.view().nodes().size() > kSearchNodesMax) return Verdict::kUndecided;
  return Search(attempt, domain).run();
}

}  // namespace muster::scheduler
