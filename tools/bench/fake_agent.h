// The agent of a node with room for everything, whose members take no time: for the benches that measure the
// server alone. It speaks the agents' protocol and runs nothing.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/service.grpc.pb.h"

namespace muster::bench {

class FakeAgent {
 public:
  // Returns when the server has welcomed it. It answers orders only when told to.
  static absl::StatusOr<std::unique_ptr<FakeAgent>> connect(const std::string& server);
  ~FakeAgent();

  // Whether orders are answered: prepared, started, and exited with 0, all at once. Those that came before
  // are answered when it is turned on.
  void answer(bool on);
  // When the order to prepare a member of this job came. An error after some seconds without one.
  absl::StatusOr<std::chrono::steady_clock::time_point> prepared_at(uint64_t job);

 private:
  using Stream = grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>;
  FakeAgent() = default;
  void read();
  void beat();
  void answer_locked(const v1::ServerMessage& order);
  v1::ReportHeader header_locked();

  std::unique_ptr<v1::Nodes::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  std::mutex write_mutex_;  // one write at a time
  std::mutex mutex_;        // of all below; never held while writing for others
  std::condition_variable changed_;
  bool answering_ = false, ended_ = false;
  std::vector<v1::ServerMessage> unanswered_;
  uint64_t sequence_ = 0;
  uint64_t last_job_ = 0;
  std::chrono::steady_clock::time_point last_at_;
  int64_t heartbeat_ms_ = 0;  // 0: not welcomed yet
  std::string refused_;
  std::thread reader_, beater_;
};

}  // namespace muster::bench
