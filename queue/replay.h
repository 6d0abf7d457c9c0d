// Folds a log from its beginning, in memory, history included: how a live server's digest is checked by
// another reader.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "queue/state.h"

namespace muster::queue {

class Replayer {
 public:
  // `flush_every` records the changes are flushed; the digest is the same for any.
  explicit Replayer(int flush_every = 4096);
  ~Replayer();

  // Records in order. kDataLoss: the records contradict each other (a rewritten log). kFailedPrecondition: a
  // record of a type or format that this release doesn't know; the message names it.
  absl::Status add(int64_t position, int64_t timestamp_ms, std::string_view key, std::string_view value);

  // Of everything added.
  std::string digest_hex();
  Chain chain() const;
  const State& state() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::queue
