#include "queue/server/node_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "queue/server/errors.h"
#include "queue/server/nodes_service.h"
#include "queue/validate.h"

namespace muster::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kWaitingMax = 256;
constexpr size_t kOrdersMax = 50'000;

}  // namespace

absl::Status validate_hello(const v1::Hello& hello) {
  const queue::FieldPath at{nullptr, "hello"};
  if (absl::Status bad = queue::validate_node_name(hello.node(), {&at, "node"}); !bad.ok()) return bad;
  const queue::FieldPath description{&at, "description"};
  const v1::NodeDescription& node = hello.description();
  if (hello.incarnation() == 0)
    return queue::field_error({&at, "incarnation"}, "0", "must be a random number");
  if (node.cpu_milli() < 0 || node.memory_bytes() < 0)
    return queue::field_error(description, "a negative amount", "must be 0 or more");
  if (node.devices_size() > 1024)
    return queue::field_error({&description, "devices"}, absl::StrCat(node.devices_size()),
                              "must be at most 1024");
  if (node.labels_size() > 256)
    return queue::field_error({&description, "labels"}, absl::StrCat(node.labels_size()),
                              "must be at most 256");
  if (const size_t bytes = node.ByteSizeLong(); bytes > 256 * 1024)
    return queue::field_error(description, absl::StrCat(bytes, " bytes"), "must be at most 262144");
  return absl::OkStatus();
}

void NodeStream::start() {
  std::lock_guard lock(mutex_);
  heard_ = steady_clock::now();
  stream_ = service_.driver_.open_stream(shared_from_this());
  read_next();
}

void NodeStream::read_next() {
  if (reading_ || read_ended_ || ending_ || waiting_ >= kWaitingMax) return;
  reading_ = true;
  StartRead(&incoming_);
}

void NodeStream::OnReadDone(bool ok) {
  v1::AgentMessage message;
  {
    std::lock_guard lock(mutex_);
    if (!ok) {
      reading_ = false;
      read_ended_ = true;
      end_locked(grpc::Status::OK);
      return;
    }
    heard_ = steady_clock::now();
    message = std::move(incoming_);
    incoming_.Clear();
  }
  // Still reading_ until it is handed on: message_taken() on the engine's thread would start the next read,
  // and another thread could hand on its message before this one.
  handle(std::move(message));
  std::lock_guard lock(mutex_);
  reading_ = false;
  read_next();
}

void NodeStream::handle(v1::AgentMessage message) {
  if (message.has_heartbeat()) {
    v1::ServerMessage answer;
    answer.set_heartbeat(true);
    send(std::move(answer), false);
    return;
  }
  if (message.has_output()) {
    v1::ServerMessage cancel;
    cancel.mutable_read_output()->set_request(message.output().request());
    cancel.mutable_read_output()->set_cancel(true);
    const bool last = message.output().end() || !message.output().error().empty();
    if (!service_.router_.deliver(stream_, std::move(*message.mutable_output())) && !last)
      send(std::move(cancel), false);
    return;
  }
  if (message.has_hello()) {
    if (absl::Status bad = validate_hello(message.hello()); !bad.ok()) return end(to_grpc(bad));
  }
  {
    std::lock_guard lock(mutex_);
    ++waiting_;
  }
  const bool taken = service_.driver_.agent_message(stream_, std::move(message),
                                                    [self = shared_from_this()] { self->message_taken(); });
  if (!taken)
    end(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is starting or stopping; try again"));
}

void NodeStream::message_taken() {
  std::lock_guard lock(mutex_);
  --waiting_;
  read_next();
}

void NodeStream::send(v1::ServerMessage message, bool close) {
  std::lock_guard lock(mutex_);
  if (ending_) return;
  if (message.has_welcome())
    silence_max_ = std::max(milliseconds(2'000), milliseconds(3 * message.welcome().heartbeat_ms()));
  if (queue_.size() >= kOrdersMax) {
    end_locked(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the agent reads its orders too slowly"));
    context_->TryCancel();
    return;
  }
  queue_.push_back(std::move(message));
  if (queue_.size() == 1) StartWrite(&queue_.front());
  if (close) end_locked(grpc::Status::OK);
}

void NodeStream::OnWriteDone(bool ok) {
  std::lock_guard lock(mutex_);
  queue_.pop_front();
  if (!ok) {
    queue_.clear();
    end_locked(grpc::Status::CANCELLED);
  }
  if (!queue_.empty()) {
    StartWrite(&queue_.front());
  } else if (ending_ && !std::exchange(finished_, true)) {
    Finish(status_);
  }
}

void NodeStream::end(grpc::Status status) {
  std::lock_guard lock(mutex_);
  end_locked(std::move(status));
}

// After what is queued.
void NodeStream::end_locked(grpc::Status status) {
  if (std::exchange(ending_, true)) return;
  status_ = std::move(status);
  if (queue_.empty() && !std::exchange(finished_, true)) Finish(status_);
}

void NodeStream::check_silence(steady_clock::time_point now) {
  std::lock_guard lock(mutex_);
  // A full inbox here is not the agent's silence.
  if (ending_ || waiting_ >= kWaitingMax || now - heard_ <= silence_max_) return;
  end_locked(grpc::Status(grpc::StatusCode::UNAVAILABLE,
                          absl::StrCat("nothing was heard for ", silence_max_.count(), " ms")));
  context_->TryCancel();  // a write that never ends would hold it
}

void NodeStream::OnCancel() {
  end(grpc::Status::CANCELLED);
}

void NodeStream::OnDone() {
  service_.driver_.close_stream(stream_);
  service_.router_.stream_gone(stream_);
  service_.gone(shared_from_this());
}

}  // namespace muster::server
