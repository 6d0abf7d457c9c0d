#include "storage/append_queue.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::storage {
namespace {

// One commit takes at most so much, so that the first group of a long queue does not wait for the last.
constexpr size_t kCommitBytesMax = size_t{4} << 20;
constexpr size_t kTypeBytesMax = 1000;

}  // namespace

absl::Status check_group(const std::vector<LogEntry>& group) {
  for (const LogEntry& entry : group) {
    const size_t bytes = entry.key.size() + entry.value.size();
    if (bytes > kRecordBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat("record ", entry.key.substr(0, 100), " has ", bytes,
                                                     " bytes of key and value; at most ", kRecordBytesMax,
                                                     " are allowed"));
    }
    if (entry.type.size() > kTypeBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat("a record's type has ", entry.type.size(),
                                                     " bytes; at most ", kTypeBytesMax, " are allowed"));
    }
  }
  return absl::OkStatus();
}

size_t group_bytes(const std::vector<LogEntry>& group) {
  size_t bytes = 0;
  for (const LogEntry& entry : group) bytes += entry.key.size() + entry.type.size() + entry.value.size();
  return bytes;
}

AppendQueue::AppendQueue(Commit commit) : commit_(std::move(commit)), thread_([this] { run(); }) {}

AppendQueue::~AppendQueue() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void AppendQueue::append(std::vector<LogEntry> group, Log::Done done) {
  Item item{std::move(group), std::move(done), 0, absl::OkStatus()};
  item.refusal = check_group(item.group);
  item.bytes = group_bytes(item.group);
  {
    std::lock_guard lock(mutex_);
    if (item.refusal.ok() && bytes_ + item.bytes > kQueueBytesMax) {
      item.refusal = absl::ResourceExhaustedError(
          absl::StrCat("the log's queue holds ", bytes_, " bytes; with these ", item.bytes,
                       " it would exceed ", kQueueBytesMax, ". Try again later, or with a smaller group"));
    }
    if (!item.refusal.ok()) {
      item.group.clear();
      item.bytes = 0;
    }
    bytes_ += item.bytes;
    items_.push_back(std::move(item));
  }
  changed_.notify_one();
}

absl::Status AppendQueue::recover(const std::function<absl::Status()>& repair) {
  std::lock_guard commit_lock(commit_mutex_);
  absl::Status status = repair();
  if (!status.ok()) return status;
  std::lock_guard lock(mutex_);
  unknown_ = false;
  return absl::OkStatus();
}

void AppendQueue::run() {
  while (true) {
    std::deque<Item> items;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !items_.empty() || closing_; });
      if (items_.empty()) return;
      size_t bytes = 0;
      do {
        bytes += items_.front().bytes;
        items.push_back(std::move(items_.front()));
        items_.pop_front();
      } while (!items_.empty() && bytes + items_.front().bytes <= kCommitBytesMax);
    }
    commit_some(std::move(items));
  }
}

void AppendQueue::commit_some(std::deque<Item> items) {
  Groups groups;
  size_t bytes = 0;
  for (Item& item : items) {
    bytes += item.bytes;
    if (item.refusal.ok()) groups.push_back(std::move(item.group));
  }
  absl::Status status;
  {
    std::lock_guard commit_lock(commit_mutex_);
    bool refused;
    {
      std::lock_guard lock(mutex_);
      refused = unknown_;
    }
    if (refused) {
      status = absl::UnavailableError(
          "the log refuses appends: an earlier one had an unknown outcome; recover first");
    } else if (!groups.empty()) {
      status = commit_(groups);
    }
    std::lock_guard lock(mutex_);
    bytes_ -= bytes;
    if (absl::IsUnknown(status)) unknown_ = true;
  }
  groups.clear();
  for (Item& item : items) {
    if (item.done) item.done(item.refusal.ok() ? status : item.refusal);
  }
}

}  // namespace muster::storage
