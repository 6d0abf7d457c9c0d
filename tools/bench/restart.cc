// `muster bench replay --restart LIVE ENDED`: a server that was killed starts again.
#include "absl/strings/str_cat.h"
#include "tools/bench/bench.h"
#include "tools/bench/history_log.h"
#include "tools/bench/measure.h"
#include "tools/bench/place.h"

namespace muster::bench {
namespace {

// Submitted while the server is down: the tail of the log that its state lacks.
constexpr uint64_t kTailMax = 10'000;

// Writes the history, has a server fold it, and kills the server.
absl::Status prepare(const Place& place, const BenchOptions& options, uint64_t tail) {
  {
    auto log = storage::open_log(place.log(), storage::LogMode::kWrite);
    if (!log.ok()) return log.status();
    History history({place.log().cell, options.ended, options.live - tail});
    if (absl::Status bad = write_history(**log, &history); !bad.ok()) return bad;
  }
  auto server = BenchServer::start(place);
  if (!server.ok()) return server.status();
  if (absl::Status bad = (*server)->lead(); !bad.ok()) return bad;
  (*server)->process().kill();
  return absl::OkStatus();
}

absl::Status write_tail(const Place& place, uint64_t first, uint64_t tail) {
  auto log = storage::open_log(place.log(), storage::LogMode::kWrite);
  if (!log.ok()) return log.status();
  History history({place.log().cell, 0, tail});
  history.go_on_from(first);
  return write_history(**log, &history);
}

}  // namespace

absl::StatusOr<Json> bench_restart(const BenchOptions& options) {
  auto place = Place::make(options.log);
  if (!place.ok()) return place.status();
  if ((*place)->log().kind == storage::LogAddress::Kind::kMemory)
    return absl::InvalidArgumentError("--log memory: does not outlive the server; name embedded: or kafka:");
  const uint64_t tail = std::min(kTailMax, options.live);
  if (absl::Status bad = prepare(**place, options, tail); !bad.ok()) return bad;
  if (absl::Status bad = write_tail(**place, options.ended + options.live - tail + 1, tail); !bad.ok())
    return bad;
  const StopWatch watch;
  auto server = BenchServer::start(**place);
  if (!server.ok()) return server.status();
  auto status = (*server)->status();
  const double seconds = watch.seconds();
  if (!status.ok()) return status.status();
  if (!status->caught_up() || status->live_jobs() != options.live || status->ended_jobs() != options.ended)
    return absl::InternalError(absl::StrCat("after the restart ", status->live_jobs(), " jobs live and ",
                                            status->ended_jobs(), " have ended, of ", options.live, " and ",
                                            options.ended));
  if (absl::Status bad = (*server)->process().stop(); !bad.ok()) return bad;
  Json out = tools::json_object();
  out["bench"] = "restart";
  out["log"] = options.log;
  out["live"] = options.live;
  out["ended"] = options.ended;
  out["tail"] = tail;
  out["restart_s"] = rounded(seconds);
  return out;
}

}  // namespace muster::bench
