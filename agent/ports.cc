#include "agent/ports.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "absl/strings/str_cat.h"
#include "agent/files.h"

namespace muster::agent {
namespace {

bool free_now(uint32_t port) {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  return fd && bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

PortRange::PortRange(uint32_t first, uint32_t last)
    : first_(first), count_(last - first + 1), next_(static_cast<uint32_t>(random_nonzero() % count_)) {}

Fd PortRange::lease_port(uint32_t port) {
  Fd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = absl::StrCat("muster-port-", port);
  memcpy(address.sun_path + 1, name.data(), name.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!fd || bind(fd.get(), reinterpret_cast<sockaddr*>(&address), bytes) != 0) return Fd();
  return fd;
}

absl::StatusOr<PortLease> PortRange::lease() {
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t port = first_ + next_;
    next_ = (next_ + 1) % count_;
    Fd held = lease_port(port);
    if (held && free_now(port)) return PortLease{port, std::move(held)};
  }
  return absl::ResourceExhaustedError(absl::StrCat("no free port in ", first_, "-", first_ + count_ - 1,
                                                   "; start the agent with a larger --ports"));
}

}  // namespace muster::agent
