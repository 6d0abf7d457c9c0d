#include "scheduler/roster.h"

namespace muster::scheduler {

Roster* Rosters::find(const Shape& shape, size_t task, bool& fresh) {
  std::unique_ptr<Use>& use = uses_[{&shape, task}];
  if (use == nullptr) use = std::make_unique<Use>();
  fresh = !use->made;
  if (use->made) return &use->roster;
  if (!use->asked || made_ == kRostersMax) {
    use->asked = true;
    return nullptr;
  }
  use->made = true;
  ++made_;
  return &use->roster;
}

}  // namespace muster::scheduler
