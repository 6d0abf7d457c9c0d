// What this node has to give: processors, memory, GPUs; and what it lacks, in words.
#pragma once

#include <string>
#include <vector>

#include "agent/agent.h"
#include "muster/v1/record.pb.h"

namespace muster::agent {

// `notes` are added to the description's own. `address` is filled in by the caller's knowledge of the
// network.
v1::NodeDescription describe_node(const AgentOptions& options, const std::string& address,
                                  const std::vector<std::string>& notes);

// MemTotal of /proc/meminfo's text, in bytes; 0 when it isn't there.
int64_t memory_total_bytes(const std::string& meminfo);

// The address from which this machine reaches "HOST:PORT"; "127.0.0.1" when it can't be told.
std::string local_address_towards(const std::string& server);

std::string host_name();

}  // namespace muster::agent
