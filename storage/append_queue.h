// The append side that memory_log and embedded_log share: a bounded queue of groups and the one thread that
// commits them, so that append() never blocks on I/O and one sync serves every group that waits.
//
// Every callback comes from this thread, in the order of the appends (a refusal keeps its place too).
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "storage/log.h"

namespace muster::storage {

// What every log checks of a group before it takes it.
absl::Status check_group(const std::vector<LogEntry>& group);
// Key, type and value of a whole group.
size_t group_bytes(const std::vector<LogEntry>& group);

// So much may wait in a log's queue; more is refused with kResourceExhausted.
inline constexpr size_t kQueueBytesMax = size_t{64} << 20;

class AppendQueue {
 public:
  using Groups = std::vector<std::vector<LogEntry>>;
  // Makes the groups durable, all or none: OK, kUnavailable (none is in the log) or kUnknown. Runs on the
  // queue's thread.
  using Commit = std::function<absl::Status(const Groups& groups)>;

  explicit AppendQueue(Commit commit);
  ~AppendQueue();  // commits what is queued first

  void append(std::vector<LogEntry> group, Log::Done done);
  // After kUnknown: runs `repair` while no commit runs; when it is OK, appends are accepted again.
  absl::Status recover(const std::function<absl::Status()>& repair);

 private:
  struct Item {
    std::vector<LogEntry> group;
    Log::Done done;
    size_t bytes = 0;
    absl::Status refusal;  // OK: to be committed
  };

  void run();
  void commit_some(std::deque<Item> items);

  const Commit commit_;
  std::mutex commit_mutex_;  // held while a commit or a repair runs; taken before mutex_
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  size_t bytes_ = 0;  // of items_
  bool unknown_ = false;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace muster::storage
