// Threads for calls that last (watches, output): one each, at most so many at a time. Ends when all have.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace muster::server {

class StreamThreads {
 public:
  explicit StreamThreads(size_t most) : most_(most) {}
  ~StreamThreads() { wait(); }

  // False: as many as may run do already, or none may start any more.
  bool start(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    if (closed_ || running_ >= most_) return false;
    ++running_;
    std::thread([this, work = std::move(work)]() mutable {
      work();
      work = nullptr;
      std::lock_guard lock(mutex_);
      --running_;
      ended_.notify_all();
    }).detach();
    return true;
  }

  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }
  size_t most() const { return most_; }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    ended_.wait(lock, [&] { return running_ == 0; });
  }

  const size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  size_t running_ = 0;
  bool closed_ = false;
};

}  // namespace muster::server
