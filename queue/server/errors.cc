#include "queue/server/errors.h"

#include "absl/strings/numbers.h"
#include "queue/server/error_details.pb.h"

namespace muster::server {

int64_t retry_after_ms(std::string_view message) {
  constexpr std::string_view kBefore = "retry after ";
  const size_t at = message.rfind(kBefore);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = message.substr(at + kBefore.size());
  const size_t end = rest.find(" ms");
  int64_t out = 0;
  if (end == std::string_view::npos || !absl::SimpleAtoi(absl::string_view(rest.data(), end), &out)) return 0;
  return out;
}

grpc::Status to_grpc(absl::StatusCode code, const std::string& message) {
  const auto grpc_code = static_cast<grpc::StatusCode>(code);  // the numbers are the same
  const int64_t delay_ms = retry_after_ms(message);
  if (delay_ms == 0) return grpc::Status(grpc_code, message);
  errors::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(delay_ms / 1000);
  retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(delay_ms % 1000 * 1'000'000));
  errors::Status details;
  details.set_code(static_cast<int>(grpc_code));
  details.set_message(message);
  google::protobuf::Any& any = *details.add_details();
  any.set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  retry.SerializeToString(any.mutable_value());
  return grpc::Status(grpc_code, message, details.SerializeAsString());
}

grpc::Status to_grpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return to_grpc(status.code(), std::string(status.message()));
}

grpc::Status to_grpc(const queue::Outcome& outcome) {
  return outcome.ok() ? grpc::Status::OK : to_grpc(outcome.code, outcome.message);
}

}  // namespace muster::server
