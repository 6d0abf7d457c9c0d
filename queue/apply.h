// apply(): the one mutator. The same record on the same state gives the same state, live and in replay: no
// clock, no randomness, no I/O, no iteration in hash order, no floating point.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/v1/record.pb.h"
#include "proto/chain.h"
#include "queue/history.h"
#include "queue/state.h"

namespace muster::queue {

// One record as it was read. `record` is null when its bytes are no envelope of this cell.
struct LogInput {
  int64_t position = 0;
  int64_t timestamp_ms = 0;
  Chain chain;  // after this record
  const v1::Record* record = nullptr;
};

// What applying it came to: for the reply to whoever asked, and for the counters.
struct Outcome {
  absl::StatusCode code =
      absl::StatusCode::kOk;  // anything else: refused, and the state is as before but for counters
  std::string message;
  uint64_t job = 0;
  std::string name;
  bool duplicate = false;
  int64_t position = 0;
  bool ok() const { return code == absl::StatusCode::kOk; }
};

// What changed that somebody outside must hear of; the engine turns these into orders.
struct Effects {
  std::vector<GangKey> gangs;      // whose members may need new orders
  std::vector<std::string> nodes;  // whose session or standing changed
};

Outcome apply(State& state, const LogInput& input, const Found& found, Effects* effects);

}  // namespace muster::queue
