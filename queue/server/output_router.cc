#include "queue/server/output_router.h"

#include <utility>
#include <vector>

namespace muster::server {

uint64_t OutputRouter::open(uint64_t stream, Taker taker) {
  std::lock_guard lock(mutex_);
  requests_[next_] = {stream, std::make_shared<Taker>(std::move(taker))};
  return next_++;
}

void OutputRouter::close(uint64_t request) {
  std::lock_guard lock(mutex_);
  requests_.erase(request);
}

bool OutputRouter::deliver(uint64_t stream, v1::OutputChunk chunk) {
  std::shared_ptr<Taker> taker;
  const uint64_t request = chunk.request();
  {
    std::lock_guard lock(mutex_);
    const auto it = requests_.find(request);
    if (it == requests_.end() || it->second.stream != stream) return false;
    taker = it->second.taker;
  }
  const bool last = chunk.end() || !chunk.error().empty();
  const bool taken = (*taker)(std::move(chunk));
  if (last || !taken) close(request);
  return taken;
}

void OutputRouter::stream_gone(uint64_t stream) {
  std::vector<std::pair<uint64_t, std::shared_ptr<Taker>>> gone;
  {
    std::lock_guard lock(mutex_);
    for (auto it = requests_.begin(); it != requests_.end();) {
      if (it->second.stream == stream) {
        gone.emplace_back(it->first, it->second.taker);
        it = requests_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (auto& [request, taker] : gone) {
    v1::OutputChunk chunk;
    chunk.set_request(request);
    chunk.set_error("its node has lost its connection to this server");
    (*taker)(std::move(chunk));
  }
}

}  // namespace muster::server
