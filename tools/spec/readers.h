// How each key of the schema is read. Internal to tools/spec.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/job.pb.h"
#include "tools/spec/value.h"

namespace muster::spec {

// Where a key may stand.
enum Scope : int {
  kJob = 1,       // at the top
  kInTask = 2,    // in a task of `tasks:`
  kSugar = 4,     // at the top of a job without `tasks:`; then it means its one task
  kForTasks = 8,  // at the top of a job with `tasks:`; then it is the default of its tasks
  kOfMember = kInTask | kSugar,
  kOfEachMember = kInTask | kSugar | kForTasks,
};

// Replaces what the field held. `job` is null within a task; `task` is the one that the key is about.
using Read = absl::Status (*)(const Value& value, v1::JobSpec* job, v1::Task* task);

struct Key {
  std::string_view name;
  int scope;
  Read read;
};

// Keys of members (replicas, resources, …) and of jobs (queue, time_limit, …); without `tasks`.
const std::vector<Key>& member_keys();
const std::vector<Key>& job_keys();

// One job. `extra`, where given, is a schema around it (a scenario's): it is asked first about each key at
// the top and takes it by saying true, its names are `extra_names`; a job then needs no command.
using ReadExtra = std::function<absl::StatusOr<bool>(const Value& entry)>;
absl::StatusOr<v1::JobSpec> read_job(const Value& top, const ReadExtra& extra = nullptr,
                                     const std::vector<std::string>& extra_names = {});

}  // namespace muster::spec
