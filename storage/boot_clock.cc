#include "storage/boot_clock.h"

#include <time.h>

namespace muster::storage {

int64_t boottime_ms() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

}  // namespace muster::storage
