// A scratch copy of what is free on the nodes: placement tries on it, and what a round has decided stays
// taken on it. Nothing here reaches the cluster. Nodes are numbered in the order of their names, so that ties
// fall by name.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "scheduler/cluster.h"

namespace muster::scheduler {

using ModelId = uint16_t;
using NodeId = uint32_t;

struct DeviceView {
  uint32_t index = 0;
  ModelId model = 0;
  bool free = false;
};

struct NodeView {
  const Node* node = nullptr;  // the cluster's; for its name and labels
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;                            // how many of its devices may be taken
  absl::InlinedVector<DeviceView, 8> devices;  // by index
};

using DevicePositions = absl::InlinedVector<uint16_t, 8>;  // into NodeView::devices

// The nodes under each value of one label.
struct Domain {
  std::string value;
  std::vector<NodeId> nodes;
};

class View {
 public:
  View() = default;
  // What is free now on nodes in service.
  static View free_of(const Cluster& cluster);
  // Every described node, as though nothing ran and all were in service: what fits there may start some day.
  static View emptied(const Cluster& cluster);

  const std::vector<NodeView>& nodes() const { return nodes_; }
  const std::vector<std::string>& models() const { return models_; }  // by ModelId
  const std::vector<Domain>& domains(const std::string& label);       // by value
  Resources total() const { return total_; }                          // free when the view was made

  void take(NodeId node, const Resources& amount, const DevicePositions& devices);
  // Places taken since the mark are free again.
  size_t mark() const { return taken_.size(); }
  void roll_back(size_t mark);

 private:
  struct Taken {
    NodeId node;
    Resources amount;
    DevicePositions devices;
  };
  void add(const Node& node, const Resources& free, bool emptied);
  ModelId intern(const std::string& model);

  std::vector<NodeView> nodes_;
  std::vector<std::string> models_;
  std::vector<Taken> taken_;
  absl::flat_hash_map<std::string, std::vector<Domain>> domains_;
  Resources total_;
};

}  // namespace muster::scheduler
