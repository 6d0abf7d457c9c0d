#include "queue/server/job_events.h"

namespace muster::server {

JobEvents::Watcher::Watcher(JobEvents& events, uint64_t job) : events_(events), job_(job) {
  std::lock_guard lock(events_.mutex_);
  events_.watchers_.emplace(job_, this);
  ++events_.count_;
}

JobEvents::Watcher::~Watcher() {
  std::lock_guard lock(events_.mutex_);
  const auto [begin, end] = events_.watchers_.equal_range(job_);
  for (auto it = begin; it != end; ++it) {
    if (it->second != this) continue;
    events_.watchers_.erase(it);
    break;
  }
  --events_.count_;
}

bool JobEvents::Watcher::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(events_.mutex_);
  changed_.wait_for(lock, timeout, [&] { return news_ || cancelled_; });
  return std::exchange(news_, false);
}

void JobEvents::Watcher::cancel() {
  std::lock_guard lock(events_.mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

bool JobEvents::Watcher::cancelled() const {
  std::lock_guard lock(events_.mutex_);
  return cancelled_;
}

void JobEvents::committed(const std::vector<uint64_t>& jobs) {
  std::lock_guard lock(mutex_);
  for (uint64_t job : jobs) {
    const auto [begin, end] = watchers_.equal_range(job);
    for (auto it = begin; it != end; ++it) {
      it->second->news_ = true;
      it->second->changed_.notify_all();
    }
  }
}

}  // namespace muster::server
