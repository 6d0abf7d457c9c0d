#include "queue/server/nodes_service.h"

#include <vector>

#include "queue/server/node_stream.h"

namespace muster::server {

NodesService::NodesService(Driver& driver, OutputRouter& router)
    : driver_(driver), router_(router), watcher_([this] { watch_heartbeats(); }) {}

NodesService::~NodesService() {
  stop();
}

grpc::ServerBidiReactor<v1::AgentMessage, v1::ServerMessage>* NodesService::Session(
    grpc::CallbackServerContext* context) {
  auto stream = std::make_shared<NodeStream>(*this, context);
  {
    std::lock_guard lock(mutex_);
    streams_.insert(stream);
    if (stopping_) stream->end(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping"));
  }
  stream->start();
  return stream.get();
}

void NodesService::gone(const std::shared_ptr<NodeStream>& stream) {
  std::lock_guard lock(mutex_);
  streams_.erase(stream);
}

void NodesService::watch_heartbeats() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait_for(lock, std::chrono::milliseconds(200));
    const std::vector<std::shared_ptr<NodeStream>> streams(streams_.begin(), streams_.end());
    lock.unlock();
    for (const auto& stream : streams) stream->check_silence(std::chrono::steady_clock::now());
    lock.lock();
  }
}

void NodesService::stop() {
  std::vector<std::shared_ptr<NodeStream>> streams;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    changed_.notify_all();
    streams.assign(streams_.begin(), streams_.end());
  }
  watcher_.join();
  for (const auto& stream : streams)
    stream->end(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping"));
}

}  // namespace muster::server
