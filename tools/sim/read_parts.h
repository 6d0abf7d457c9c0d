// How a scenario's parts are read. Internal to tools/sim.
#pragma once

#include "tools/sim/scenario.h"
#include "tools/spec/value.h"

namespace muster::sim {

inline constexpr int64_t kGpusMax = 1'024;  // of a node

// One entry of `jobs:`; with `count` it stands for several.
absl::Status read_job_entry(const spec::Value& value, Scenario* scenario);
// One entry of `nodes:`.
absl::Status read_node_entry(const spec::Value& value, std::vector<ScenarioNode>* out);
absl::Status read_event_entry(const spec::Value& value, Scenario* scenario);
// One entry of `queues:`, and the `set` of a queue event; what it does not name stays unset.
absl::Status read_queue_entry(const spec::Value& value, v1::QueueSpec* out);

// INVALID_ARGUMENT for what this release plans to serve and does not.
absl::Status planned_here(const spec::Value& value);

v1::NodeDescription describe(int64_t cpu_milli, int64_t memory_bytes, int64_t gpus, const std::string& model);

}  // namespace muster::sim
