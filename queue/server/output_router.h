// Brings what agents send of their tasks' output to the calls that asked for it. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "muster/v1/service.pb.h"

namespace muster::server {

class OutputRouter {
 public:
  // Takes a chunk; false when there is no room for it: the request is over then, and is made again from
  // there. Called on the agent's stream's thread: must not block, and must not call the router.
  using Taker = std::function<bool(v1::OutputChunk)>;

  // A request to the agent on this stream; its number goes into ReadOutput.
  uint64_t open(uint64_t stream, Taker taker);
  void close(uint64_t request);

  // From the agent's stream. False: nobody wants it any more; the agent should be told to cancel.
  bool deliver(uint64_t stream, v1::OutputChunk chunk);
  // Its requests end with an error.
  void stream_gone(uint64_t stream);

 private:
  struct Request {
    uint64_t stream = 0;
    std::shared_ptr<Taker> taker;
  };
  std::mutex mutex_;
  std::unordered_map<uint64_t, Request> requests_;
  uint64_t next_ = 1;
};

}  // namespace muster::server
