// The connection to the server, for verbs: calls with a deadline, failures in words and as exit codes.
//
// Threading: call() from any thread. Errors are absl::Status with gRPC's code; the message is complete, as
// the user sees it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "muster/v1/service.grpc.pb.h"

namespace muster::tools {

inline constexpr int64_t kCallDeadlineMs = 30'000;

class Client {
 public:
  // Connects when first used. `address` is HOST:PORT.
  explicit Client(const std::string& address);
  ~Client();

  v1::Muster::Stub& stub() { return *stub_; }
  const std::string& address() const { return address_; }

  template <typename Request, typename Reply>
  absl::Status call(grpc::Status (v1::Muster::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                    const Request& request, Reply* reply) {
    grpc::ClientContext context;
    prepare(&context, kCallDeadlineMs);
    return explained(((*stub_).*method)(&context, request, reply));
  }

  // Says who calls, and sets the deadline; 0: none.
  static void prepare(grpc::ClientContext* context, int64_t deadline_ms);
  // gRPC's status as the user sees it.
  absl::Status explained(const grpc::Status& status) const;

 private:
  std::string address_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Muster::Stub> stub_;
};

// What may go better when asked again: no server, or one that is not ready.
bool worth_retrying(const absl::Status& status);
// When a server that was too busy wants to be asked again; 0: it did not say.
int64_t retry_after_ms(const absl::Status& status);

int exit_code_of(const absl::Status& status);
// "muster: MESSAGE" on stderr; gives the exit code.
int fail(const absl::Status& status);

std::string login_name();

void sleep_ms(int64_t ms);
int64_t monotonic_ms();
int64_t wall_ms();

// Waits between tries, from 50 ms up to a second, until `patience_ms` have passed without success; says on
// stderr, once, after two seconds, what it waits for.
class Patience {
 public:
  explicit Patience(int64_t patience_ms) : patience_ms_(patience_ms) {}
  // False: the patience is at its end.
  bool wait(const absl::Status& why);
  void succeeded() { began_ms_ = -1; }

 private:
  int64_t patience_ms_;
  int64_t began_ms_ = -1;  // of the failures in a row
  int64_t delay_ms_ = 0;
  bool said_ = false;
};

}  // namespace muster::tools
