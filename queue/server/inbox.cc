#include "queue/server/inbox.h"

#include <utility>

namespace muster::server {
namespace {

constexpr size_t kRecordsMax = 16'384;
constexpr size_t kBytesMax = size_t{64} << 20;
constexpr size_t kTurnRecordsMax = 4'096;

}  // namespace

void Inbox::open() {
  std::lock_guard lock(mutex_);
  closed_ = false;
}

bool Inbox::post(Task task) {
  std::lock_guard lock(mutex_);
  if (closed_) return false;
  tasks_.push_back(std::move(task));
  if (taker_waits_) some_.notify_one();
  return true;
}

bool Inbox::push(RecordBatch batch) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] {
    return closed_ || records_stopped_ || batches_.empty() || (records_ < kRecordsMax && bytes_ < kBytesMax);
  });
  if (closed_ || records_stopped_) return false;
  records_ += batch.inputs.size();
  bytes_ += batch.bytes;
  batches_.push_back(std::move(batch));
  if (taker_waits_) some_.notify_one();
  return true;
}

void Inbox::stop_records() {
  std::lock_guard lock(mutex_);
  records_stopped_ = true;
  batches_.clear();
  records_ = bytes_ = 0;
  room_.notify_all();
}

void Inbox::resume_records() {
  std::lock_guard lock(mutex_);
  records_stopped_ = false;
}

Inbox::Taken Inbox::take(std::chrono::steady_clock::time_point deadline) {
  Taken out;
  std::unique_lock lock(mutex_);
  taker_waits_ = true;
  some_.wait_until(lock, deadline, [&] { return closed_ || !tasks_.empty() || !batches_.empty(); });
  taker_waits_ = false;
  out.tasks.swap(tasks_);
  size_t taken = 0;
  while (!batches_.empty() && taken < kTurnRecordsMax) {
    taken += batches_.front().inputs.size();
    bytes_ -= batches_.front().bytes;
    out.batches.push_back(std::move(batches_.front()));
    batches_.pop_front();
  }
  records_ -= taken;
  if (!out.batches.empty()) room_.notify_all();
  return out;
}

void Inbox::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  some_.notify_all();
  room_.notify_all();
}

}  // namespace muster::server
