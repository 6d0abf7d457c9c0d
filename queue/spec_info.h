// What the fold needs of a job's spec again and again, read from it once and shared by jobs with an equal
// spec.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/v1/job.pb.h"
#include "queue/digest.h"
#include "scheduler/request.h"

namespace muster::queue {

struct TaskInfo {
  uint32_t first_rank = 0;
  uint32_t members = 0;
  v1::OnFailure on_failure = v1::ON_FAILURE_STOP;
};

struct SpecInfo {
  std::string bytes;   // the spec's deterministic serialisation
  StateDigest digest;  // of the bytes
  std::shared_ptr<const scheduler::Shape> shape;
  std::vector<TaskInfo> tasks;
  uint32_t members = 0;
  int success_task = -1;  // index; -1: all members
  uint32_t retries_own = 0, retries_infrastructure = 10, retries_start = 5;
  int64_t start_limit_ms = 0, grace_ms = 0, stop_after_ms = 0;
  uint32_t array_count = 0;
  v1::JobSpec parse() const;
  uint32_t task_of(uint32_t rank) const;
};

std::string spec_bytes(const v1::JobSpec& spec);
std::shared_ptr<const SpecInfo> make_spec_info(const v1::JobSpec& spec, std::string bytes);
// The same shape in another queue, or at another priority.
std::shared_ptr<const scheduler::Shape> shape_with(const scheduler::Shape& shape, const std::string& queue,
                                                   int32_t priority);

}  // namespace muster::queue
