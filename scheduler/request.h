// What a gang asks for, as the planner sees it: made once from a job's spec, immutable, shared by equal jobs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/resources.h"

namespace muster::scheduler {

struct LabelRule {
  std::string label;
  std::vector<std::string> values;
  bool operator==(const LabelRule&) const = default;
};

// Members of one kind.
struct TaskRequest {
  std::string name;
  uint32_t members = 1;
  Resources each;
  std::vector<std::string> gpu_models;  // any of these; empty: any
  std::vector<LabelRule> require, exclude, prefer;
  uint32_t per_node = 0;  // 0: no limit
  bool packed = true;     // bound by the gang's pack label
  bool operator==(const TaskRequest&) const = default;
};

// A shape: everything that decides whether a gang can be placed. One that failed is not tried again until
// something that could matter has changed.
struct Shape {
  std::string queue;
  int32_t priority = 0;
  bool preemptible = false;
  std::vector<TaskRequest> tasks;  // ranks are counted through them in order
  std::string pack_label;          // empty: no packing
  bool pack_soft = false;
  bool operator==(const Shape&) const = default;
  uint32_t members() const;
  Resources total() const;
};

struct GangKey {
  uint64_t job = 0;
  uint32_t element = 0;  // index + 1; 0: a job, or an array's next elements
  auto operator<=>(const GangKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const GangKey& key) {
    return H::combine(std::move(state), key.job, key.element);
  }
};

// A gang that waits. An array waits as one, with `copies` elements that may start.
struct PendingGang {
  GangKey key;
  std::shared_ptr<const Shape> shape;
  int64_t line = 0;           // order among equals: lower first
  int64_t not_before_ms = 0;  // cell time; back-off
  uint32_t copies = 1;        // how many may be placed now (array: pending elements within its running limit)
};

}  // namespace muster::scheduler
