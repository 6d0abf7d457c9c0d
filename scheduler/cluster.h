// The nodes and what is held on them. The fold keeps it (it is how a decision is checked) and the planner
// reads it. It is derived: from node descriptions and from the members of live attempts; rebuilding it gives
// an equal one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/request.h"

namespace muster::scheduler {

struct DeviceSlot {
  uint32_t index = 0;
  std::string model;
  bool held = false;
  GangKey holder;
  bool gone = false;  // no longer described, still held: listed without a model until it is given back
  bool operator==(const DeviceSlot&) const = default;
};

struct Node {
  std::string name;
  uint64_t revision = 0;
  uint64_t session = 0;
  bool described = false;    // false: removed (or not joined again yet) while something is still held on it
  bool schedulable = false;  // ready: connected, not draining, not fenced, not quarantined
  bool draining = false;     // why it is not schedulable; for explanations only
  Resources allocatable;
  Resources used;
  std::vector<DeviceSlot> devices;
  std::map<std::string, std::string> labels;
  uint32_t members = 0;
  bool operator==(const Node&) const = default;

  // max(0, allocatable − used): a node that shrinks under its tasks goes to zero and grants nothing.
  Resources free() const;
};

// What one member takes of a node.
struct Holding {
  Resources amount;
  std::vector<uint32_t> devices;  // indices
  GangKey holder;
};

class Cluster {
 public:
  // Adds a node or changes its description; what is held on it stays held. Devices that are gone stay listed
  // while they are held and go when released.
  void describe(const std::string& name, uint64_t revision, const Resources& allocatable,
                const std::vector<DeviceSlot>& devices, const std::map<std::string, std::string>& labels);
  void set_session(const std::string& name, uint64_t session);
  void set_schedulable(const std::string& name, bool schedulable, bool draining = false);
  // What is still held there stays counted, on a node that grants nothing, until it is given back.
  void remove(const std::string& name);

  const Node* find(const std::string& name) const;
  const std::map<std::string, Node>& nodes() const { return nodes_; }  // by name

  // Whether the amount and exactly these devices are free there now.
  bool can_hold(const std::string& name, const Holding& holding) const;
  // Takes and gives back. hold() does not check (a replayed decision was checked by the fold); giving back
  // what is not held is a defect and stops the process.
  void hold(const std::string& name, const Holding& holding);
  void release(const std::string& name, const Holding& holding);

  // Grows whenever something became more able to hold a gang: released, joined, undrained, described anew.
  uint64_t freed() const { return freed_; }
  // Grows whenever a node's description changed, or one joined or left: what "never fits" depends on.
  uint64_t described() const { return described_; }
  // Places taken so far: how the planner sees that all it decided was folded.
  uint64_t held() const { return held_; }
  // For those who keep a copy: how often a node has changed in what is free on it or whether it is in
  // service, and the names of those that did since (more than once where more than once). False: too long
  // ago, copy anew. Changes of a description are counted by described() alone.
  uint64_t changes() const { return changes_; }
  bool changed_since(uint64_t since, std::vector<std::string>& names) const;
  // Of what the cluster is, not of how it came to be so: the counters are left out.
  bool operator==(const Cluster& other) const { return nodes_ == other.nodes_; }

 private:
  void changed(const std::string& name);

  std::map<std::string, Node> nodes_;
  uint64_t freed_ = 0;
  uint64_t described_ = 0;
  uint64_t held_ = 0;
  uint64_t changes_ = 0;
  std::vector<std::string> recent_;  // a ring: the n-th change is at n % its size
};

}  // namespace muster::scheduler
