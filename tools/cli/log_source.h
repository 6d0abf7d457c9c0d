// Where `muster log` reads records: from the server's Watch, or from the log itself, beside a living server.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/log.h"
#include "tools/cli/client.h"

namespace muster::tools {

class LogSource {
 public:
  virtual ~LogSource() = default;
  // The positions from the oldest on that can be read, and the one after the last.
  struct Range {
    int64_t first = 0, end = 0;
  };
  virtual absl::StatusOr<Range> range() = 0;
  // Records from `from` on, up to and with `until` (-1: to the end as it is now). `follow`: goes on for ever.
  // Ends with the first error of `each`.
  using Each = std::function<absl::Status(const storage::LogRecord& record)>;
  virtual absl::Status read(int64_t from, int64_t until, bool follow, const Each& each) = 0;
};

std::unique_ptr<LogSource> server_log(Client* client);
// `address` as --log takes it: embedded:DIR or kafka:BROKERS/CELL.
absl::StatusOr<std::unique_ptr<LogSource>> direct_log(const std::string& address);

}  // namespace muster::tools
