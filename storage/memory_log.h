// A log in memory, for tests and `memory:`. Nothing survives the object.
#pragma once

#include <memory>

#include "storage/log.h"

namespace muster::storage {

std::unique_ptr<Log> make_memory_log();

}  // namespace muster::storage
