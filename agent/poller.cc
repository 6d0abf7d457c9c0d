#include "agent/poller.h"

#include <sys/epoll.h>

#include <cassert>

namespace muster::agent {

Poller::Poller() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

void Poller::add(int fd, std::function<void()> ready) {
  ready_[fd] = std::move(ready);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Poller::remove(int fd) {
  if (ready_.erase(fd) != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Poller::run_once(int timeout_ms) {
  epoll_event events[256];
  const int count = epoll_wait(epoll_.get(), events, 256, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const auto it = ready_.find(events[i].data.fd);
    if (it == ready_.end()) continue;  // removed by one before it
    const auto ready = it->second;     // it may remove itself
    ready();
  }
}

}  // namespace muster::agent
