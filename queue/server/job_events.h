// Wakes those who wait for new records about a job. The driver tells it of every commit; any thread waits.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "queue/state.h"

namespace muster::server {

class JobEvents {
 public:
  // One waiter. `job` 0 waits for nothing by itself, only for cancel().
  class Watcher {
   public:
    Watcher(JobEvents& events, uint64_t job);
    ~Watcher();
    // True: there may be new records since the last wait. False: nothing came in time.
    bool wait(std::chrono::milliseconds timeout);
    void cancel();
    bool cancelled() const;

   private:
    friend class JobEvents;
    JobEvents& events_;
    const uint64_t job_;
    std::condition_variable changed_;
    bool news_ = false, cancelled_ = false;  // under the events' mutex
  };

  // The jobs that these writes, now committed, have new records of.
  void committed(const std::vector<uint64_t>& jobs);
  bool anyone() const { return count_.load(std::memory_order_relaxed) > 0; }

 private:
  mutable std::mutex mutex_;
  std::unordered_multimap<uint64_t, Watcher*> watchers_;
  std::atomic<size_t> count_{0};
};

}  // namespace muster::server
