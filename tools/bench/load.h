// Jobs to submit, ready to be sent: requests are made and serialised before the clock starts.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/service.pb.h"

namespace muster::bench {

// A job such as people submit, of some 300 bytes. Which one it is shows in its name, arguments and key.
v1::SubmitItem training_job(uint64_t number);
// `/bin/true` on one processor.
v1::SubmitItem trivial_job(uint64_t number);

class Load {
 public:
  using Make = v1::SubmitItem (*)(uint64_t number);
  // Jobs first … first + count - 1, `batch` in a request.
  Load(Make make, uint64_t first, uint64_t count, uint64_t batch);

  // Sends all, `in_flight` requests at a time over one connection, and waits for the answers. Seconds from
  // the first call to the last answer. An error unless each job got an id of its own.
  absl::StatusOr<double> send(const std::string& server, int in_flight);

 private:
  absl::Status check(const std::vector<grpc::ByteBuffer>& replies) const;

  uint64_t jobs_;
  std::vector<grpc::ByteBuffer> requests_;
};

}  // namespace muster::bench
