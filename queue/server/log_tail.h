// Reads the log on a thread of its own: takes records, computes their chain, decodes them, and pushes batches
// to the inbox, so that the engine's thread finds them ready to fold.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/arena.h"
#include "proto/chain.h"
#include "queue/apply.h"
#include "storage/log.h"

namespace muster::server {

class Inbox;

struct RecordBatch {
  std::unique_ptr<google::protobuf::Arena> arena;  // owns the records
  std::vector<queue::LogInput> inputs;
  size_t bytes = 0;
  bool caught_up = false;  // folding it reaches what was the log's end when the reading began
};

class LogTail {
 public:
  struct Events {
    // The log can't be read now and is tried again (a message), or is read again ("").
    std::function<void(const std::string& trouble)> trouble;
    // Reading has ended for good: kOutOfRange (truncated or rewritten), kDataLoss (damage),
    // kFailedPrecondition (a record that this release doesn't know).
    std::function<void(absl::Status)> ended;
  };

  // Starts to read after `position`, whose chain is `chain`.
  LogTail(storage::Log& log, std::string cell, int64_t position, Chain chain, Inbox& inbox, Events events);
  ~LogTail();  // stops; the inbox's records must have been stopped or closed before

 private:
  void run();
  absl::Status open();
  absl::Status read_on();
  absl::Status push(std::vector<storage::LogRecord> records);
  void pause();

  storage::Log& log_;
  const std::string cell_;
  int64_t position_;
  Chain chain_;
  Inbox& inbox_;
  const Events events_;
  int64_t first_end_ = -1;  // the log's end when the reading began
  bool caught_up_ = false;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;  // guards reader_ against the destructor's wake()
  std::unique_ptr<storage::LogReader> reader_;
  std::thread thread_;
};

}  // namespace muster::server
