#include "scheduler/request.h"

namespace muster::scheduler {

uint32_t Shape::members() const {
  uint32_t out = 0;
  for (const TaskRequest& task : tasks) out += task.members;
  return out;
}

Resources Shape::total() const {
  Resources out;
  for (const TaskRequest& task : tasks) out += task.each * task.members;
  return out;
}

}  // namespace muster::scheduler
