#include "queue/server/log_tail.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/server/inbox.h"

namespace muster::server {
namespace {

constexpr size_t kBatchRecordsMax = 1'024;
constexpr int kReadMs = 1'000;

absl::Status unknown_record(int64_t position, std::string_view value) {
  v1::Record record;
  record.ParseFromArray(value.data(), static_cast<int>(value.size()));
  return absl::FailedPreconditionError(absl::StrCat(
      "the record at position ", position, " is a ", record.type(), " of format ", record.format(),
      "; this release reads formats up to ", kFormat, ": start a release that knows it"));
}

}  // namespace

LogTail::LogTail(storage::Log& log, std::string cell, int64_t position, Chain chain, Inbox& inbox,
                 Events events)
    : log_(log),
      cell_(std::move(cell)),
      position_(position),
      chain_(chain),
      inbox_(inbox),
      events_(std::move(events)),
      thread_([this] { run(); }) {}

LogTail::~LogTail() {
  stopping_ = true;
  {
    std::lock_guard lock(mutex_);
    if (reader_) reader_->wake();
  }
  thread_.join();
}

void LogTail::run() {
  bool troubled = false;
  while (!stopping_) {
    absl::Status status = reader_ ? read_on() : open();
    if (status.ok()) {
      if (std::exchange(troubled, false)) events_.trouble("");
      continue;
    }
    if (absl::IsCancelled(status)) return;
    if (!absl::IsUnavailable(status)) {
      events_.ended(status);
      return;
    }
    troubled = true;
    events_.trouble(absl::StrCat("the log can't be read: ", status.message()));
    pause();
  }
}

void LogTail::pause() {
  for (int i = 0; i < 10 && !stopping_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

absl::Status LogTail::open() {
  const absl::StatusOr<int64_t> end = log_.end();
  if (!end.ok()) return end.status();
  int64_t from = position_ + 1;
  if (position_ < 0) {
    const absl::StatusOr<int64_t> first = log_.first();
    if (!first.ok()) return first.status();
    from = *first;
  }
  if (*end < from)
    return absl::OutOfRangeError(
        absl::StrCat("the log ends at position ", *end, ", before ", from,
                     ", which the state has already folded up to: it was truncated or "
                     "rewritten"));
  if (first_end_ < 0) first_end_ = *end;
  auto reader = log_.open_reader(from);
  if (!reader.ok()) return reader.status();
  {
    std::lock_guard lock(mutex_);
    reader_ = *std::move(reader);
  }
  position_ = from - 1;
  if (caught_up_ || from < first_end_) return absl::OkStatus();
  return push({});  // nothing to read first
}

absl::Status LogTail::read_on() {
  auto records = reader_->read(kBatchRecordsMax, kReadMs);
  if (!records.ok()) return records.status();
  if (records->empty()) return absl::OkStatus();
  return push(*std::move(records));
}

absl::Status LogTail::push(std::vector<storage::LogRecord> records) {
  RecordBatch batch;
  batch.arena = std::make_unique<google::protobuf::Arena>();
  batch.inputs.reserve(records.size());
  absl::Status unknown;
  for (const storage::LogRecord& raw : records) {
    auto* record = google::protobuf::Arena::CreateMessage<v1::Record>(batch.arena.get());
    const Decoded decoded = decode_record(raw.value, cell_, record);
    if (decoded == Decoded::kUnknown) {
      unknown = unknown_record(raw.position, raw.value);
      break;
    }
    position_ = raw.position;
    chain_ = chain_next(chain_, raw.position, raw.key, raw.value);
    batch.inputs.push_back(
        {raw.position, raw.timestamp_ms, chain_, decoded == Decoded::kOk ? record : nullptr});
    batch.bytes += raw.value.size();
  }
  if (unknown.ok() && position_ + 1 >= first_end_) caught_up_ = true;
  batch.caught_up = caught_up_;
  if (!inbox_.push(std::move(batch))) return absl::CancelledError();
  return unknown;
}

}  // namespace muster::server
