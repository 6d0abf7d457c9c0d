// Finds jobs, live or ended, by id or name, for the reading calls. Waits for the engine's thread and reads
// the store: only on the work pool's and the streams' threads.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/service.pb.h"
#include "queue/server/driver.h"

namespace muster::server {

class Lookup {
 public:
  explicit Lookup(Driver& driver) : driver_(driver) {}

  // The job's id; a name means the newest job that bears it. NOT_FOUND, INVALID_ARGUMENT (neither id nor
  // name).
  absl::StatusOr<uint64_t> resolve(const v1::JobRef& ref);
  absl::StatusOr<v1::JobView> view(const v1::JobRef& ref, bool spec);
  absl::StatusOr<v1::ExplainReply> explain(const v1::JobRef& ref);
  absl::StatusOr<v1::ListJobsReply> list(const v1::ListJobsRequest& request);
  absl::StatusOr<v1::JobSpec> spec(uint64_t job);

 private:
  absl::StatusOr<uint64_t> newest_named(const std::string& name);
  absl::StatusOr<v1::JobView> ended_view(uint64_t id, uint32_t element);
  absl::StatusOr<std::shared_ptr<storage::StateStore>> store();
  Driver& driver_;
};

absl::Status stopping_error();
int64_t unix_ms();

}  // namespace muster::server
