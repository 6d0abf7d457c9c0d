#include "tools/cli/log_source.h"

#include "absl/strings/str_cat.h"
#include "storage/open_log.h"
#include "tools/cli/follow.h"

namespace muster::tools {
namespace {

constexpr size_t kReadMax = 4096;
constexpr int kReadWaitMs = 500;
constexpr int64_t kStalledMs = 30'000;

class ServerLog : public LogSource {
 public:
  explicit ServerLog(Client* client) : client_(client) {}

  absl::StatusOr<Range> range() override {
    v1::ServerStatus status;
    if (absl::Status bad = client_->call(&v1::Muster::Stub::GetStatus, v1::GetStatusRequest(), &status);
        !bad.ok())
      return bad;
    return Range{0, status.position() + 1};
  }

  absl::Status read(int64_t from, int64_t until, bool follow, const Each& each) override {
    v1::WatchRequest request;
    request.set_from(from);
    request.set_follow(follow);
    if (until >= 0) request.set_until(until);
    return watch(*client_, request, follow ? kPatienceMs : 0, [&](const v1::Event& event) {
      return each({event.position(), event.timestamp_ms(), event.key(), event.value()});
    });
  }

 private:
  Client* client_;
};

class DirectLog : public LogSource {
 public:
  explicit DirectLog(std::unique_ptr<storage::Log> log) : log_(std::move(log)) {}

  absl::StatusOr<Range> range() override {
    const absl::StatusOr<int64_t> first = log_->first();
    if (!first.ok()) return first.status();
    const absl::StatusOr<int64_t> end = log_->end();
    if (!end.ok()) return end.status();
    return Range{*first, *end};
  }

  absl::Status read(int64_t from, int64_t until, bool follow, const Each& each) override {
    const absl::StatusOr<Range> now = range();
    if (!now.ok()) return now.status();
    const int64_t last = until >= 0 ? until : now->end - 1;
    int64_t next = std::max(from, now->first);
    if (!follow && next > last) return absl::OkStatus();
    auto reader = log_->open_reader(next);
    if (!reader.ok()) return reader.status();
    int64_t heard_ms = monotonic_ms();
    while (follow || next <= last) {
      auto records = (*reader)->read(kReadMax, kReadWaitMs);
      if (!records.ok() && !absl::IsUnavailable(records.status())) return records.status();
      if (records.ok() && !records->empty()) heard_ms = monotonic_ms();
      if (!follow && monotonic_ms() - heard_ms > kStalledMs)
        return records.ok() ? absl::UnavailableError(absl::StrCat("the log gave no record after position ",
                                                                  next - 1, " for ", kStalledMs / 1000, " s"))
                            : records.status();
      if (!records.ok()) continue;
      for (const storage::LogRecord& record : *records) {
        if (!follow && record.position > last) return absl::OkStatus();
        next = record.position + 1;
        if (absl::Status stop = each(record); !stop.ok()) return stop;
      }
    }
    return absl::OkStatus();
  }

 private:
  std::unique_ptr<storage::Log> log_;
};

}  // namespace

std::unique_ptr<LogSource> server_log(Client* client) {
  return std::make_unique<ServerLog>(client);
}

absl::StatusOr<std::unique_ptr<LogSource>> direct_log(const std::string& address) {
  const absl::StatusOr<storage::LogAddress> parsed = storage::parse_log_address(address);
  if (!parsed.ok())
    return absl::Status(parsed.status().code(), absl::StrCat("--log: ", parsed.status().message()));
  if (parsed->kind == storage::LogAddress::Kind::kMemory)
    return absl::InvalidArgumentError(
        "--log memory: has nothing to read; name embedded:DIR or kafka:BROKERS/CELL");
  auto log = storage::open_log(*parsed, storage::LogMode::kReadOnly);
  if (!log.ok()) return log.status();
  return std::make_unique<DirectLog>(*std::move(log));
}

}  // namespace muster::tools
