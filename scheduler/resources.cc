#include "scheduler/resources.h"

namespace muster::scheduler {

Resources& Resources::operator+=(const Resources& other) {
  cpu_milli += other.cpu_milli;
  memory_bytes += other.memory_bytes;
  gpus += other.gpus;
  return *this;
}

Resources& Resources::operator-=(const Resources& other) {
  cpu_milli -= other.cpu_milli;
  memory_bytes -= other.memory_bytes;
  gpus -= other.gpus;
  return *this;
}

bool Resources::covers(const Resources& other) const {
  return cpu_milli >= other.cpu_milli && memory_bytes >= other.memory_bytes && gpus >= other.gpus;
}

Resources operator*(Resources amount, int64_t times) {
  amount.cpu_milli *= times;
  amount.memory_bytes *= times;
  amount.gpus *= times;
  return amount;
}

}  // namespace muster::scheduler
