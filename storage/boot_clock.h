// The clock of the logs that have no broker's: milliseconds since boot, suspended time included; never set
// back.
#pragma once

#include <cstdint>

namespace muster::storage {

int64_t boottime_ms();

}  // namespace muster::storage
