// What people call a job: `12`, `12[3]` an element of an array, `12.actor.0` or `12.0` a member, `12@2` an
// attempt; or the job's name instead of the number, with [3] and @2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/service.pb.h"

namespace muster::tools {

struct JobName {
  v1::JobRef job;
  uint32_t attempt = 0;  // 0: the last
  std::optional<uint32_t> rank;
  std::string task;  // of a member, by its task and its index within it
  uint32_t task_index = 0;
};

// INVALID_ARGUMENT says what forms there are.
absl::StatusOr<JobName> parse_job_name(std::string_view text);
// Only a job or an element; INVALID_ARGUMENT for a member or an attempt.
absl::StatusOr<v1::JobRef> parse_job_ref(std::string_view text);

// The rank of the member that `name` names, from the job's tasks. NOT_FOUND says which tasks there are.
absl::StatusOr<uint32_t> rank_of(const JobName& name, const v1::JobSpec& spec);

// The task of a rank, and the member's index within it; the task is empty when the spec has fewer members.
struct TaskOfRank {
  std::string task;
  uint32_t index = 0;
};
TaskOfRank task_of_rank(const v1::JobSpec& spec, uint32_t rank);

}  // namespace muster::tools
