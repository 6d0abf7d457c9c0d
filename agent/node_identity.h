// Who this agent is, in DIR/node: the node's name, the cell of its first session (it obeys no other), and its
// incarnation. An incarnation is one life of the directory on one boot of the machine; the fold counts
// reports by it, and takes a new one to mean that what ran before is gone.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "agent/fd.h"

namespace muster::agent {

struct NodeIdentity {
  std::string name;
  std::string cell;  // empty: no session yet
  uint64_t incarnation = 0;
  std::string boot;
};

// One agent a directory. ALREADY_EXISTS while another one holds it.
absl::StatusOr<Fd> lock_agent_dir(const std::string& dir);

// Reads the identity, or makes one. `asked_name` empty: the name there is, else `default_name`. `fresh` says
// that the incarnation is new; the caller saves it, once what belongs to it is there. FAILED_PRECONDITION
// when the directory belongs to a node of another name.
absl::StatusOr<NodeIdentity> load_identity(const std::string& dir, const std::string& asked_name,
                                           const std::string& default_name, bool* fresh);
absl::Status save_identity(const std::string& dir, const NodeIdentity& identity);

}  // namespace muster::agent
