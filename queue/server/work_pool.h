// A few threads for what may read the store or wait for the engine's thread, so that gRPC's own threads never
// block.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"

namespace muster::server {

class WorkPool {
 public:
  using Work = absl::AnyInvocable<void()>;
  WorkPool(size_t threads, size_t waiting_max);
  ~WorkPool();  // does what is queued first
  // False: too much waits already, or it is ending.
  bool run(Work work);

 private:
  void loop();
  const size_t waiting_max_;
  std::mutex mutex_;
  std::condition_variable some_;
  std::deque<Work> queue_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace muster::server
