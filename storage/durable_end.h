// How far the log is durable, shared by its writer and its readers: the writer advances it, readers wait for
// it. Any thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace muster::storage {

class DurableEnd {
 public:
  // What one reader waits with. A wake() that comes between two waits ends the next one.
  struct Waiter {
    bool woken = false;
  };

  int64_t get() const;
  void advance(int64_t end);  // never backwards: an older value changes nothing
  // Returns as soon as the end is past `position` or at wake() (true), or after timeout_ms (false).
  bool wait_past(int64_t position, int timeout_ms, Waiter* waiter);
  void wake(Waiter* waiter);

 private:
  mutable std::mutex mutex_;
  std::condition_variable moved_;
  int64_t end_ = 0;
};

}  // namespace muster::storage
