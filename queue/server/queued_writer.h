// The server's side of a stream of messages: one write in flight, the rest in a bounded queue. Whoever pushes
// waits for room, so that a slow reader slows its source and nothing grows. Any thread.
//
// Lives until gRPC is done with it: keep_alive() first; then whoever holds a shared_ptr may go on to call it.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

namespace muster::server {

template <typename Message>
class QueuedWriter : public grpc::ServerWriteReactor<Message> {
 public:
  void keep_alive(std::shared_ptr<QueuedWriter> self) { self_ = std::move(self); }

  // False: the call is over.
  bool push(Message message) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return over_ || queue_.empty() || bytes_ < kBytesMax; });
    if (over_) return false;
    bytes_ += message.ByteSizeLong();
    queue_.push_back(std::move(message));
    if (queue_.size() == 1) this->StartWrite(&queue_.front());
    return true;
  }

  // After what was pushed. Only the first end counts.
  void end(grpc::Status status) {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    status_ = std::move(status);
    if (queue_.empty()) this->Finish(status_);
  }

  bool over() const {
    std::lock_guard lock(mutex_);
    return over_;
  }

 protected:
  // The client has gone, or the server ends the call: the source should stop.
  virtual void on_over() {}

 private:
  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    bytes_ -= queue_.front().GetCachedSize();
    queue_.pop_front();
    if (!ok) {
      over_ = true;
      queue_.clear();
    }
    room_.notify_all();
    if (!queue_.empty()) {
      this->StartWrite(&queue_.front());
    } else if (ended_) {
      this->Finish(status_);
    }
  }

  void OnCancel() override {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
      room_.notify_all();
    }
    on_over();
  }

  void OnDone() override { self_.reset(); }

  static constexpr size_t kBytesMax = size_t{1} << 20;

  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::deque<Message> queue_;  // the first is being written
  size_t bytes_ = 0;
  bool over_ = false, ended_ = false;
  grpc::Status status_;
  std::shared_ptr<QueuedWriter> self_;
};

}  // namespace muster::server
