// Waiting for jobs and following their output, through restarts of the server.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/service.pb.h"
#include "tools/cli/client.h"

namespace muster::tools {

inline constexpr int64_t kPatienceMs = 60'000;

struct WaitOptions {
  int64_t timeout_ms = -1;            // -1: none
  int64_t patience_ms = kPatienceMs;  // how long no server may answer
  bool for_capacity = false;          // also when the server says that it can never run
};

absl::StatusOr<v1::JobView> get_job(Client& client, const v1::JobRef& job, bool spec);

// Until the job has ended: its last view. DEADLINE_EXCEEDED … of `timeout_ms` is an OK view that has not
// ended. FAILED_PRECONDITION: it can never run, which the server kept saying for a few seconds (a node may be
// just joining); the message says why.
absl::StatusOr<v1::JobView> wait_for_job(Client& client, const v1::JobRef& job, const WaitOptions& options);

// Writes ranks' output: as it is when there is one, else each line with "[rank] " before it.
class LogPrinter {
 public:
  LogPrinter(std::ostream& out, bool prefix, bool json) : out_(out), prefix_(prefix), json_(json) {}
  void set_prefix(bool prefix) { prefix_ = prefix; }
  void add(const v1::LogChunk& chunk);  // what was printed before is skipped
  void finish();                        // writes lines that have no end; forgets what was printed

 private:
  void print_line(uint32_t rank, const std::string& line);
  std::ostream& out_;
  bool prefix_, json_;
  std::map<uint32_t, int64_t> printed_;      // by rank
  std::map<uint32_t, std::string> unended_;  // by rank
};

// One call of Logs; when the stream breaks it is opened again, and what was printed is not printed again.
absl::Status print_logs(Client& client, const v1::LogsRequest& request, int64_t patience_ms,
                        LogPrinter* printer);

// The output of each attempt in turn until the job has ended; its last view.
absl::StatusOr<v1::JobView> follow_job(Client& client, const v1::JobRef& job, const v1::LogsRequest& request,
                                       const WaitOptions& options, LogPrinter* printer);

// Calls `each` with the records that Watch sends; opened again after the last one when the stream breaks.
absl::Status watch(Client& client, v1::WatchRequest request, int64_t patience_ms,
                   const std::function<absl::Status(const v1::Event&)>& each);

}  // namespace muster::tools
