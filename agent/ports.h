// Ports for members, from the agent's range. A port is leased as long as its member lives: no two live
// members of one machine share one, not even members of different agents. The lease is a socket bound to an
// abstract name, which the kernel keeps per network namespace, exactly as it keeps ports; whoever holds the
// descriptor (the agent, the member's supervisor) holds the lease, and the last one's death ends it.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "agent/fd.h"

namespace muster::agent {

struct PortLease {
  uint32_t port = 0;
  Fd held;
};

class PortRange {
 public:
  PortRange(uint32_t first, uint32_t last);

  // A port that no one leases and no one listens on now. Each call looks on from the last one given, so that
  // a port is used again as late as possible. RESOURCE_EXHAUSTED when all are taken.
  absl::StatusOr<PortLease> lease();

  // The lease of a known port, after a restart. Empty when it is held: by the member's own supervisor.
  static Fd lease_port(uint32_t port);

 private:
  const uint32_t first_;
  const uint32_t count_;
  uint32_t next_;
};

}  // namespace muster::agent
