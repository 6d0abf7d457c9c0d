// A scratch copy of what is free on the nodes: placement tries on it, and what a round has decided stays
// taken on it. Nothing here reaches the cluster. Nodes are numbered in the order of their names, so that ties
// fall by name.
//
// A view may be kept and refreshed from the cluster it was made of, at the cost of what has changed there: it
// equals a new one then.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "scheduler/cluster.h"

namespace muster::scheduler {

using ModelId = uint16_t;
using NodeId = uint32_t;
using Labels = std::map<std::string, std::string>;

struct DeviceView {
  uint32_t index = 0;
  ModelId model = 0;
  bool free = false;
};

struct NodeFacts {
  std::string name;
  Labels labels;
};

struct NodeView {
  Resources free;  // zero out of service; `gpus`: how many of its devices may be taken
  bool in_service = false;
  bool draining = false;
  absl::InlinedVector<DeviceView, 8> devices;  // by index
  Resources allocatable;
  std::shared_ptr<const NodeFacts> facts;

  const std::string& name() const { return facts->name; }
  const Labels& labels() const { return facts->labels; }
};

using DevicePositions = absl::InlinedVector<uint16_t, 8>;  // into NodeView::devices

// The nodes under each value of one label.
struct Domain {
  std::string value;
  std::vector<NodeId> nodes;
};

class View {
 public:
  // All described nodes: what is free now on those in service.
  explicit View(const Cluster& cluster);
  // The same nodes as though nothing ran and all were in service: what fits there may start some day.
  View emptied() const;

  // Takes over what the cluster has changed since. False: too much has, make a new one. Nothing may be taken.
  bool refresh(const Cluster& cluster);

  const std::vector<NodeView>& nodes() const { return nodes_; }
  const std::vector<std::string>& models() const { return models_; }  // by ModelId
  const std::vector<Domain>& domains(const std::string& label);       // by value
  Resources total() const { return total_; }                          // free while nothing was taken

  void take(NodeId node, const Resources& amount, const DevicePositions& devices);
  // Places taken since the mark are free again.
  size_t mark() const { return taken_.size(); }
  void roll_back(size_t mark);

  // Nodes that were taken from or given back to, in order, since the last forget_touched().
  const std::vector<NodeId>& touched() const { return touched_; }
  void forget_touched() { touched_.clear(); }

 private:
  struct Taken {
    NodeId node;
    Resources amount;
    DevicePositions devices;
  };
  void add(const Node& node);
  void update(NodeView& view, const Node& node);
  ModelId intern(const std::string& model);

  std::vector<NodeView> nodes_;
  std::vector<std::string> models_;
  std::vector<Taken> taken_;
  std::vector<NodeId> touched_;
  absl::flat_hash_map<std::string, NodeId> ids_;
  absl::flat_hash_map<std::string, std::vector<Domain>> domains_;
  Resources total_;
  const Cluster* source_;
  uint64_t described_ = 0;  // the source's counters, as copied
  uint64_t changes_ = 0;
};

}  // namespace muster::scheduler
