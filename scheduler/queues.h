// The queues: a tree by name ("research/vision" is below "research"), each with a quota (guaranteed) and a
// limit (never exceeded), and what live placements of its jobs use. Use counts for the queue and for every
// queue above it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "scheduler/request.h"

namespace muster::scheduler {

// By resource: "cpu" (milli), "memory" (bytes), "gpu" (thousandths), "gpu.MODEL" (thousandths).
using Amounts = std::map<std::string, int64_t>;

struct Queue {
  uint32_t weight = 1;
  Amounts quota;
  Amounts limit;
  Amounts used;                  // by live placements, all of them
  Amounts used_not_preemptible;  // the part that must stay within the quota
  bool declared = false;         // by `queue set`; else it is there because jobs name it
  bool operator==(const Queue&) const = default;
};

// Which rule of which queue a gang would break, and by how much.
struct QueueBlock {
  std::string queue;
  bool limit = false;  // else quota
  std::string resource;
  int64_t allowed = 0, used = 0, wanted = 0;
  bool never = false;  // wanted alone is over what is allowed
};

class Queues {
 public:
  void set(const std::string& name, uint32_t weight, Amounts quota, Amounts limit);
  void remove(const std::string& name);
  const std::map<std::string, Queue>& all() const { return queues_; }

  // `models` is what the gang's devices are, by the model's bare name ("a100"), in thousandths: known once it
  // is placed; empty before, when only cpu, memory and gpu are checked. Of several rules that are broken, one
  // that can never be kept is told first.
  std::optional<QueueBlock> blocks(const std::string& queue, const Resources& total, const Amounts& models,
                                   bool preemptible) const;
  void use(const std::string& queue, const Resources& total, const Amounts& models, bool preemptible);
  // Giving back what is not in use is a defect and stops the process.
  void give_back(const std::string& queue, const Resources& total, const Amounts& models, bool preemptible);

  // Grows whenever a queue could admit more.
  uint64_t freed() const { return freed_; }
  // Grows whenever a quota or a limit was set or removed: what "never, in this queue" depends on.
  uint64_t ruled() const { return ruled_; }
  bool operator==(const Queues& other) const;  // undeclared, unused queues count as absent

 private:
  std::map<std::string, Queue> queues_;
  uint64_t freed_ = 0;
  uint64_t ruled_ = 0;
};

}  // namespace muster::scheduler
