// Errors as gRPC's clients see them. A message that says "retry after N ms" also carries a
// google.rpc.RetryInfo.
#pragma once

#include <grpcpp/support/status.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "queue/apply.h"

namespace muster::server {

grpc::Status to_grpc(absl::StatusCode code, const std::string& message);
grpc::Status to_grpc(const absl::Status& status);
grpc::Status to_grpc(const queue::Outcome& outcome);

// The number in "retry after N ms", or 0.
int64_t retry_after_ms(std::string_view message);

}  // namespace muster::server
