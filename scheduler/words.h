// Amounts as people write them, for explanations: "8 GPUs", "500m CPU", "1.5Gi of memory".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/resources.h"

namespace muster::scheduler {

enum class Kind { kGpus, kCpu, kMemory };
constexpr std::array<Kind, 3> kKinds = {Kind::kGpus, Kind::kCpu, Kind::kMemory};

int64_t amount(const Resources& of, Kind kind);

std::string number(Kind kind, int64_t value);  // as in a job: "8", "500m", "64Gi"
std::string noun(Kind kind, int64_t value);    // "GPU", "GPUs", "CPUs", "of memory"
std::string words(Kind kind, int64_t value);   // "8 GPUs"

// By a queue's resource name ("cpu", "memory", "gpu", "gpu.a100"), in its units.
std::string queue_number(const std::string& resource, int64_t value);
std::string queue_words(const std::string& resource, int64_t value);

std::string counted(int64_t count, const std::string& one);  // "1 node", "3 nodes"
std::string duration(int64_t ms);                            // "3 h 20 min", "12 s"

// The candidate with the fewest changed letters; empty when there are none.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace muster::scheduler
