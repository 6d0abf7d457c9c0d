// `muster bench NAME`: how fast the whole of Muster is, and what the log and the machine below it could do in
// the same run. Everything is real: a server is this program as a process of its own, driven over gRPC, and
// its client's work counts too. The figures are for comparing (`ratio` is ours / raw of one run), not for
// asserting on.
//
// Each bench checks that what it counts really happened, and fails otherwise. One at a time in a process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/cli/json.h"

namespace muster::bench {

using tools::Json;

struct BenchOptions {
  std::string log =
      "embedded:";  // embedded:[DIR], kafka:BROKERS/PREFIX or memory:; always a fresh log within
  uint64_t jobs = 0;
  uint64_t batch = 100;  // jobs a request
  int in_flight = 8;     // requests
  uint64_t live = 0;     // restart: jobs that wait
  uint64_t ended = 0;    // restart: jobs that have ended
};

// Jobs submitted, folded and answered a second; raw: appending the same bytes.
absl::StatusOr<Json> bench_submit(const BenchOptions& options);
// One client, one job at a time: until the reply, and until an agent has the order; raw: one record, until it
// is read.
absl::StatusOr<Json> bench_latency(const BenchOptions& options);
// Records a second that a server folds from the log of a history, into memory and into RocksDB; raw: only
// reading.
absl::StatusOr<Json> bench_replay(const BenchOptions& options);
// Seconds from a server's start to serving, after a history of `ended` and `live` jobs and a SIGKILL.
absl::StatusOr<Json> bench_restart(const BenchOptions& options);
// Trivial jobs to completion a second with a real agent; raw: processes that one process can start and await.
absl::StatusOr<Json> bench_jobs(const BenchOptions& options);
// The rate of submissions and the server's memory before and after so many jobs have ended.
absl::StatusOr<Json> bench_retention(const BenchOptions& options);

}  // namespace muster::bench
