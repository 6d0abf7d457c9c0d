#include "storage/durable_end.h"

#include <algorithm>
#include <chrono>

namespace muster::storage {

int64_t DurableEnd::get() const {
  std::lock_guard lock(mutex_);
  return end_;
}

void DurableEnd::advance(int64_t end) {
  {
    std::lock_guard lock(mutex_);
    end_ = std::max(end_, end);
  }
  moved_.notify_all();
}

bool DurableEnd::wait_past(int64_t position, int timeout_ms, Waiter* waiter) {
  std::unique_lock lock(mutex_);
  auto ready = [&] { return end_ > position || waiter->woken; };
  if (!ready() && timeout_ms > 0) moved_.wait_for(lock, std::chrono::milliseconds(timeout_ms), ready);
  const bool was_ready = ready();
  waiter->woken = false;
  return was_ready;
}

void DurableEnd::wake(Waiter* waiter) {
  {
    std::lock_guard lock(mutex_);
    waiter->woken = true;
  }
  moved_.notify_all();
}

}  // namespace muster::storage
