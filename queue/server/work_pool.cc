#include "queue/server/work_pool.h"

#include <utility>

namespace muster::server {

WorkPool::WorkPool(size_t threads, size_t waiting_max) : waiting_max_(waiting_max) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { loop(); });
}

WorkPool::~WorkPool() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  some_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkPool::run(Work work) {
  std::lock_guard lock(mutex_);
  if (ending_ || queue_.size() >= waiting_max_) return false;
  queue_.push_back(std::move(work));
  some_.notify_one();
  return true;
}

void WorkPool::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    some_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
  }
}

}  // namespace muster::server
