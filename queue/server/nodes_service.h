// Agents' streams: service Nodes. Each has one write in flight and a bounded queue; one that is silent for
// too long is ended, and the engine told that its agent has gone.
#pragma once

#include <grpcpp/server_builder.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "muster/v1/service.grpc.pb.h"
#include "queue/server/driver.h"
#include "queue/server/output_router.h"

namespace muster::server {

class NodeStream;

class NodesService final : public v1::Nodes::CallbackService {
 public:
  NodesService(Driver& driver, OutputRouter& router);
  ~NodesService() override;
  // Ends all streams; new ones are refused.
  void stop();

  grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* Session(
      grpc::CallbackServerContext* context) override;

 private:
  friend class NodeStream;
  void watch_heartbeats();
  void gone(const std::shared_ptr<NodeStream>& stream);

  Driver& driver_;
  OutputRouter& router_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::shared_ptr<NodeStream>> streams_;
  bool stopping_ = false;
  std::thread watcher_;
};

}  // namespace muster::server
