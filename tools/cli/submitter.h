// Submitting: keys made before the first send, the same request again when its answer was lost, requests of a
// size that the server takes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "muster/v1/service.pb.h"
#include "tools/cli/client.h"

namespace muster::tools {

std::string random_key();  // 128 bits, hex

// What became of the job at `index`: `result` when status is OK.
using Answered =
    std::function<void(size_t index, const absl::Status& status, const v1::SubmitResult& result)>;

// Submits all, in order; `answered` is called once for each that was answered. An error: those that were not
// answered yet were given up on (no server for `patience_ms`), or the request was refused whole; a later call
// with the same keys makes no job twice.
absl::Status submit(Client& client, std::vector<v1::SubmitItem> items, int64_t patience_ms,
                    const Answered& answered);

}  // namespace muster::tools
