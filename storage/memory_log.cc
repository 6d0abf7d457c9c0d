#include "storage/memory_log.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "storage/append_queue.h"
#include "storage/boot_clock.h"
#include "storage/durable_end.h"
#include "storage/opened_base.h"

namespace muster::storage {
namespace {

// Shared by the log and its readers. A record never changes once it is in.
struct Records {
  std::mutex mutex;
  int64_t base = 0;
  std::deque<LogRecord> records;
  DurableEnd end;
};

class MemoryReader : public LogReader {
 public:
  MemoryReader(std::shared_ptr<Records> log, int64_t position) : log_(std::move(log)), next_(position) {}

  absl::StatusOr<std::vector<LogRecord>> read(size_t records_max, int timeout_ms) override {
    log_->end.wait_past(next_, timeout_ms, &waiter_);
    std::lock_guard lock(log_->mutex);
    const int64_t end = log_->base + static_cast<int64_t>(log_->records.size());
    if (next_ < log_->base || next_ > end) {
      return absl::OutOfRangeError(
          absl::StrCat("the memory log holds positions ", log_->base, " to ", end, ", not ", next_));
    }
    const size_t count = std::min(records_max, static_cast<size_t>(end - next_));
    auto from = log_->records.begin() + (next_ - log_->base);
    next_ += static_cast<int64_t>(count);
    return std::vector<LogRecord>(from, from + static_cast<std::ptrdiff_t>(count));
  }

  void wake() override { log_->end.wake(&waiter_); }

 private:
  const std::shared_ptr<Records> log_;
  int64_t next_;
  DurableEnd::Waiter waiter_;
};

class MemoryLog : public Log {
 public:
  MemoryLog() : queue_([this](const AppendQueue::Groups& groups) { return commit(groups); }) {}

  void append(std::vector<LogEntry> group, Done done) override {
    queue_.append(std::move(group), std::move(done));
  }

  absl::Status recover() override {
    return queue_.recover([] { return absl::OkStatus(); });
  }

  absl::StatusOr<std::unique_ptr<LogReader>> open_reader(int64_t position) override {
    return std::make_unique<MemoryReader>(log_, position);
  }

  absl::StatusOr<int64_t> end() override { return log_->end.get(); }

  absl::StatusOr<int64_t> first() override {
    std::lock_guard lock(log_->mutex);
    return log_->base;
  }

  bool exclusive() const override { return true; }

 private:
  absl::Status commit(const AppendQueue::Groups& groups) {
    int64_t end;
    {
      std::lock_guard lock(log_->mutex);
      for (const auto& group : groups) {
        for (const LogEntry& entry : group) {
          if (log_->records.empty()) log_->base = opened_base(entry.value);
          const int64_t position = log_->base + static_cast<int64_t>(log_->records.size());
          log_->records.push_back({position, boottime_ms(), entry.key, entry.value});
        }
      }
      end = log_->base + static_cast<int64_t>(log_->records.size());
    }
    log_->end.advance(end);
    return absl::OkStatus();
  }

  const std::shared_ptr<Records> log_ = std::make_shared<Records>();
  AppendQueue queue_;  // last: its thread uses the above
};

}  // namespace

std::unique_ptr<Log> make_memory_log() {
  return std::make_unique<MemoryLog>();
}

}  // namespace muster::storage
