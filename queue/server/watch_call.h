// One Watch: records from a position on, of one job or all, to one client. Runs on a thread of its own.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/service.pb.h"
#include "queue/server/driver.h"

namespace muster::server {

class WatchCall {
 public:
  // `send` gives an event to the client and waits for room (false: it has gone); `over` says whether it has,
  // or the server is ending.
  WatchCall(Driver& driver, v1::WatchRequest request, std::function<bool(v1::Event)> send,
            std::function<bool()> over)
      : driver_(driver), request_(std::move(request)), send_(std::move(send)), over_(std::move(over)) {}

  absl::Status run();

 private:
  absl::Status watch_all();
  absl::Status watch_job();
  // Sends the job's records from `*next` on that are committed; false: there are more.
  absl::StatusOr<bool> send_events(uint64_t job, int64_t* next);
  absl::StatusOr<storage::LogRecord> record_at(int64_t position);
  bool send(storage::LogRecord record);

  Driver& driver_;
  const v1::WatchRequest request_;
  const std::function<bool(v1::Event)> send_;
  const std::function<bool()> over_;
  std::unique_ptr<storage::LogReader> reader_;
  std::deque<storage::LogRecord> read_;  // not sent yet
  int64_t reader_next_ = -1;
};

}  // namespace muster::server
