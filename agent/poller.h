// Waits for descriptors and calls what belongs to them. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>

#include "agent/fd.h"

namespace muster::agent {

class Poller {
 public:
  Poller();

  // `ready` is called when the descriptor can be read, or its other end has closed. It may remove any
  // descriptor.
  void add(int fd, std::function<void()> ready);
  void remove(int fd);

  // Calls what is ready, waiting up to timeout_ms for it.
  void run_once(int timeout_ms);

 private:
  Fd epoll_;
  std::unordered_map<int, std::function<void()>> ready_;
};

}  // namespace muster::agent
