#include "tools/bench/history_log.h"

#include <condition_variable>
#include <mutex>

#include "storage/open_log.h"

namespace muster::bench {
namespace {

constexpr size_t kGroupRecords = 5'000;
constexpr int kGroupsInFlight = 4;

// What became of the appends.
struct Appends {
  std::mutex mutex;
  std::condition_variable changed;
  int in_flight = 0;
  absl::Status failure;

  // Waits until at most so many are in flight.
  absl::Status wait(int most) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return in_flight <= most; });
    return failure;
  }
  void done(const absl::Status& status) {
    std::lock_guard lock(mutex);
    --in_flight;
    if (failure.ok()) failure = status;
    changed.notify_all();
  }
};

}  // namespace

absl::Status write_history(storage::Log& log, History* history) {
  Appends appends;
  absl::Status failure;
  while (failure.ok()) {
    std::vector<storage::LogEntry> group = history->next(kGroupRecords);
    if (group.empty()) break;
    {
      std::lock_guard lock(appends.mutex);
      ++appends.in_flight;
    }
    log.append(std::move(group), [&](absl::Status status) { appends.done(status); });
    failure = appends.wait(kGroupsInFlight - 1);
  }
  return appends.wait(0);
}

absl::StatusOr<std::unique_ptr<storage::Log>> open_history(const Place& place,
                                                           const HistoryOptions& options) {
  if (place.log().kind != storage::LogAddress::Kind::kMemory)
    return storage::open_log(place.log(), storage::LogMode::kReadOnly);
  auto log = storage::open_log(place.log(), storage::LogMode::kWrite);
  if (!log.ok()) return log.status();
  History history(options);
  if (absl::Status bad = write_history(**log, &history); !bad.ok()) return bad;
  return log;
}

}  // namespace muster::bench
