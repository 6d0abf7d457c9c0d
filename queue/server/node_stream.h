// One agent's connection. Its callbacks come from gRPC's threads, its orders from the engine's; all state is
// under one mutex. It lives until gRPC is done with it and the driver has let go of it.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "muster/v1/service.grpc.pb.h"
#include "queue/server/driver.h"

namespace muster::server {

class NodesService;

class NodeStream final : public grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>,
                         public OrderSink,
                         public std::enable_shared_from_this<NodeStream> {
 public:
  NodeStream(NodesService& service, grpc::CallbackServerContext* context)
      : service_(service), context_(context) {}
  void start();  // once, after a shared_ptr holds it

  void send(v1::ServerMessage message, bool close) override;
  void end(grpc::Status status);
  // Ends it if nothing was heard for too long.
  void check_silence(std::chrono::steady_clock::time_point now);

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void read_next();
  void message_taken();
  void handle(v1::AgentMessage message);
  void end_locked(grpc::Status status);

  NodesService& service_;
  grpc::CallbackServerContext* const context_;
  uint64_t stream_ = 0;  // the driver's number
  std::mutex mutex_;
  std::chrono::steady_clock::time_point heard_;
  std::chrono::milliseconds silence_max_{10'000};  // until it is welcomed
  v1::AgentMessage incoming_;
  std::deque<v1::ServerMessage> queue_;  // the first is being written
  size_t waiting_ = 0;                   // messages that the engine has not taken yet
  bool reading_ = false, read_ended_ = false, ending_ = false, finished_ = false;
  grpc::Status status_;
};

// What an agent says of itself, checked before it becomes a record.
absl::Status validate_hello(const v1::Hello& hello);

}  // namespace muster::server
