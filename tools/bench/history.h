// A synthetic history: the records of a cell in which jobs were submitted, placed, prepared, started and
// ended, as a server would have written them. Folding it must refuse nothing; the benches assert that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/log.h"

namespace muster::bench {

struct HistoryOptions {
  std::string cell = "local";
  uint64_t jobs_ended = 0;  // each: Submitted, Placed, Prepared, Started, Exited
  uint64_t jobs_live = 0;   // each: Submitted, and waits (there is no room for it)
  int nodes = 100;          // of 64 CPUs
};

class History {
 public:
  explicit History(HistoryOptions options);
  // Only submissions, the first of them this job's, to be appended to a log that exists. Call before next().
  void go_on_from(uint64_t job);
  // The next records, at most about `records_max`; empty at the end.
  std::vector<storage::LogEntry> next(size_t records_max);
  uint64_t records() const { return static_cast<uint64_t>(position_); }

 private:
  void open(std::vector<storage::LogEntry>* out);
  void run_jobs(uint64_t count, std::vector<storage::LogEntry>* out);
  void submit(bool fits, std::vector<storage::LogEntry>* out);
  HistoryOptions options_;
  bool opened_ = false;
  int64_t position_ = 0;
  uint64_t next_job_ = 1, ended_ = 0, live_ = 0, sequence_ = 0;
  std::vector<uint64_t> report_sequence_;
};

}  // namespace muster::bench
