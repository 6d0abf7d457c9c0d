// One Logs call: the output of one attempt's members, read through their agents' streams. Runs on a thread of
// its own.
//
// A client that reads slowly: chunks wait in a bounded queue; what finds no room ends its request, which is
// made again from that offset once there is some.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/service.pb.h"
#include "queue/server/driver.h"
#include "queue/server/output_router.h"

namespace muster::server {

class LogsCall : public std::enable_shared_from_this<LogsCall> {
 public:
  // `send` and `over` as WatchCall's.
  LogsCall(Driver& driver, OutputRouter& router, v1::LogsRequest request,
           std::function<bool(v1::LogChunk)> send, std::function<bool()> over)
      : driver_(driver),
        router_(router),
        request_(std::move(request)),
        send_(std::move(send)),
        over_(std::move(over)) {}

  absl::Status run();

 private:
  struct Source {
    uint32_t rank = 0;
    std::string task, node;
    v1::MemberRef member;
    int64_t offset = 0;
    uint64_t request = 0, stream = 0;  // 0: none is open
    bool done = false;
    bool said = false;  // why it can't be read now
  };
  struct Arrived {
    size_t source = 0;
    v1::OutputChunk chunk;
  };

  absl::Status find_attempt();
  absl::Status add_sources(const v1::JobView& view, const v1::AttemptState& attempt);
  bool job_lives();
  void open(size_t source);
  void cancel_all();
  bool take(size_t source, v1::OutputChunk chunk);  // on the agent's stream's thread
  bool handle(Arrived arrived);
  bool note(Source& source, const std::string& text, bool end);

  Driver& driver_;
  OutputRouter& router_;
  const v1::LogsRequest request_;
  const std::function<bool(v1::LogChunk)> send_;
  const std::function<bool()> over_;
  std::vector<Source> sources_;  // the call's thread only

  std::mutex mutex_;
  std::condition_variable some_;
  std::deque<Arrived> arrived_;
  size_t bytes_ = 0;
};

}  // namespace muster::server
