// A log that holds a synthetic history (history.h).
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/log.h"
#include "tools/bench/history.h"
#include "tools/bench/place.h"

namespace muster::bench {

// Appends all of it that is left.
absl::Status write_history(storage::Log& log, History* history);

// The place's log, to read: the one that was written there, or, in memory, a new one that holds such a
// history.
absl::StatusOr<std::unique_ptr<storage::Log>> open_history(const Place& place, const HistoryOptions& options);

}  // namespace muster::bench
