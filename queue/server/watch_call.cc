#include "queue/server/watch_call.h"

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "queue/server/lookup.h"
#include "queue/validate.h"

namespace muster::server {
namespace {

constexpr int kReadMs = 200;
constexpr size_t kReadRecords = 256;
constexpr size_t kEventsAtOnce = 1'000;
constexpr int64_t kSkipMax = 2'048;  // records read over rather than opening a reader anew

}  // namespace

absl::Status WatchCall::run() {
  if (request_.from() < 0)
    return queue::field_error({nullptr, "from"}, absl::StrCat(request_.from()),
                              "must be a position, 0 or more");
  const bool one = request_.job().id() != 0 || !request_.job().name().empty();
  return one ? watch_job() : watch_all();
}

bool WatchCall::send(storage::LogRecord record) {
  v1::Event event;
  event.set_position(record.position);
  event.set_timestamp_ms(record.timestamp_ms);
  event.set_key(std::move(record.key));
  event.set_value(std::move(record.value));
  return send_(std::move(event));
}

absl::Status WatchCall::watch_all() {
  const auto now = driver_.call([](Turn& turn) { return turn.state().meta.position(); });
  if (!now) return stopping_error();
  int64_t until = request_.until() > 0 ? request_.until() : std::numeric_limits<int64_t>::max();
  if (!request_.follow()) until = std::min(until, *now);
  int64_t next = request_.from();
  while (next <= until && !over_()) {
    if (!reader_) {
      auto reader = driver_.log().open_reader(next);
      if (!reader.ok()) return reader.status();
      reader_ = *std::move(reader);
    }
    auto records = reader_->read(kReadRecords, kReadMs);
    if (absl::IsUnavailable(records.status()) && request_.follow()) continue;
    if (!records.ok()) return records.status();
    for (storage::LogRecord& record : *records) {
      if (record.position > until) return absl::OkStatus();
      next = record.position + 1;
      if (!send(std::move(record))) return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::Status WatchCall::watch_job() {
  auto view = Lookup(driver_).view(request_.job(), false);
  if (!view.ok()) return view.status();
  const uint64_t job = view->state().id();
  JobEvents::Watcher news(driver_.events(), job);
  int64_t next = request_.from();
  while (!over_()) {
    // Asked before the events are read, so that none of a job's last ones is missed.
    const auto lives = driver_.call([&](Turn& turn) {
      turn.commit();
      return turn.state().find({job, 0}) != nullptr;
    });
    if (!lives) return stopping_error();
    auto all = send_events(job, &next);
    if (!all.ok()) return all.status();
    if (!*all) continue;
    if (!*lives || !request_.follow() || (request_.until() > 0 && next > request_.until()))
      return absl::OkStatus();
    while (!over_() && !news.wait(std::chrono::milliseconds(kReadMs))) {
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> WatchCall::send_events(uint64_t job, int64_t* next) {
  const auto store = driver_.store();
  if (!store) return absl::UnavailableError("the state is being folded anew; ask again");
  std::vector<int64_t> positions;
  const absl::Status scanned = store->scan(storage::Table::kEvents, queue::event_key(job, *next), false,
                                           [&](std::string_view key, std::string_view value) {
                                             if (queue::gang_of_store_key(key).job != job) return false;
                                             for (int64_t position : queue::positions_of_event(key, value)) {
                                               if (position >= *next) positions.push_back(position);
                                             }
                                             return positions.size() < kEventsAtOnce;
                                           });
  if (!scanned.ok()) return scanned;
  for (int64_t position : positions) {
    if (request_.until() > 0 && position > request_.until()) {
      *next = position;
      return true;
    }
    auto record = record_at(position);
    if (!record.ok()) return record.status();
    *next = position + 1;
    if (!send(*std::move(record))) return true;
  }
  return positions.size() < kEventsAtOnce;
}

absl::StatusOr<storage::LogRecord> WatchCall::record_at(int64_t position) {
  while (!over_()) {
    while (!read_.empty() && read_.front().position < position) read_.pop_front();
    if (!read_.empty() && read_.front().position == position) {
      storage::LogRecord out = std::move(read_.front());
      read_.pop_front();
      return out;
    }
    if (!reader_ || !read_.empty() || reader_next_ > position || reader_next_ + kSkipMax < position) {
      auto reader = driver_.log().open_reader(position);
      if (!reader.ok()) return reader.status();
      reader_ = *std::move(reader);
      reader_next_ = position;
      read_.clear();
    }
    auto records = reader_->read(kReadRecords, kReadMs);
    if (absl::IsUnavailable(records.status())) continue;
    if (!records.ok()) return records.status();
    for (storage::LogRecord& record : *records) {
      reader_next_ = record.position + 1;
      read_.push_back(std::move(record));
    }
  }
  return absl::CancelledError("the watch has ended");
}

}  // namespace muster::server
