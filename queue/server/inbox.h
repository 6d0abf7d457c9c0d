// What waits for the engine's thread: tasks (requests, agents' messages, what became of appends, queries) and
// records.
//
// Tasks are never refused here: whoever posts keeps a limit of their own (driver.h), so that reports, cancels
// and decisions always have room. Records are bounded: the log's reader waits. Any thread; one takes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>

#include "absl/functional/any_invocable.h"
#include "queue/server/log_tail.h"

namespace muster::server {

class Turn;
using Task = absl::AnyInvocable<void(Turn&)>;

class Inbox {
 public:
  struct Taken {
    std::deque<Task> tasks;
    std::deque<RecordBatch> batches;
  };

  void open();  // once; it is closed until then
  // False: closed; the task was dropped.
  bool post(Task task);
  // Waits for room. False: closed, or the reader was told to stop.
  bool push(RecordBatch batch);
  // Drops records and lets a waiting push() go; until resume_records() nothing is pushed.
  void stop_records();
  void resume_records();

  // Waits until something is there, the deadline, or close(); takes all tasks and at most some thousand
  // records.
  Taken take(std::chrono::steady_clock::time_point deadline);
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable some_;  // for the taker
  std::condition_variable room_;  // for the reader
  std::deque<Task> tasks_;
  std::deque<RecordBatch> batches_;
  size_t records_ = 0, bytes_ = 0;
  bool closed_ = true, records_stopped_ = false, taker_waits_ = false;
};

}  // namespace muster::server
