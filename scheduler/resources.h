// Amounts of what a node has and a member takes. Integers only: CPU in milli-cores, memory in bytes, devices
// whole.
#pragma once

#include <cstdint>

namespace muster::scheduler {

struct Resources {
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;

  Resources& operator+=(const Resources& other);
  Resources& operator-=(const Resources& other);
  bool operator==(const Resources&) const = default;
  bool covers(const Resources& other) const;
};
Resources operator*(Resources amount, int64_t times);

}  // namespace muster::scheduler
