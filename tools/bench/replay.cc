// `muster bench replay`: a server's own driver, with its reading thread, folds a log; nothing is served.
#include <thread>

#include "absl/strings/str_cat.h"
#include "queue/server/driver.h"
#include "queue/server/server.h"
#include "spdlog/spdlog.h"
#include "tools/bench/bench.h"
#include "tools/bench/history_log.h"
#include "tools/bench/measure.h"
#include "tools/bench/place.h"

namespace muster::bench {
namespace {

constexpr double kPatienceS = 600;
constexpr size_t kReadRecords = 1'024;

using OpenStore = decltype(server::DriverOptions::open_store);

struct Folded {
  double per_s = 0;
  std::string digest;
};

// What the fold came to, with all of it committed.
struct Outcome {
  uint64_t ended = 0, refused = 0, undecodable = 0;
  int64_t position = 0;
  std::string digest;
};

Outcome outcome_of(server::Turn& turn) {
  turn.commit();
  const queue::State& state = turn.state();
  return {state.meta.jobs_ended(), state.meta.refused(), state.meta.undecodable(), state.meta.position(),
          state.digest().hex()};
}

absl::StatusOr<Folded> fold_log(const Place& place, const HistoryOptions& history, OpenStore open_store) {
  auto log = open_history(place, history);
  if (!log.ok()) return log.status();
  auto end = (*log)->end();
  if (!end.ok()) return end.status();
  server::DriverOptions options;
  options.engine = server::engine_options(place.log().cell, "bench", false, 2'000);
  options.log = *std::move(log);
  options.open_store = std::move(open_store);
  server::Driver driver(std::move(options));
  const StopWatch watch;
  if (absl::Status bad = driver.begin("bench"); !bad.ok()) return bad;
  // The log is only read here, so that this server never joins its cell: the end is a position.
  const auto folded = [&] {
    const auto position = driver.call([](server::Turn& turn) { return turn.state().meta.position(); });
    return !position || *position + 1 >= *end;
  };
  while (!folded() && watch.seconds() < kPatienceS) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto outcome = driver.call(outcome_of);
  const double seconds = watch.seconds();
  driver.stop();
  if (!outcome || outcome->position + 1 < *end || outcome->ended != history.jobs_ended ||
      outcome->refused != 0 || outcome->undecodable != 0)
    return absl::InternalError(
        absl::StrCat("the history of ", *end, " records was not folded as it was written",
                     outcome ? absl::StrCat(": position ", outcome->position, ", ", outcome->ended,
                                            " jobs ended, ", outcome->refused, " refused")
                             : ""));
  return Folded{static_cast<double>(*end) / seconds, outcome->digest};
}

absl::StatusOr<double> read_log(const Place& place, const HistoryOptions& history) {
  auto log = open_history(place, history);
  if (!log.ok()) return log.status();
  auto end = (*log)->end();
  if (!end.ok()) return end.status();
  const StopWatch watch;
  auto reader = (*log)->open_reader(0);
  if (!reader.ok()) return reader.status();
  for (int64_t next = 0; next < *end;) {
    auto records = (*reader)->read(kReadRecords, 1'000);
    if (!records.ok()) return records.status();
    if (!records->empty()) next = records->back().position + 1;
  }
  return static_cast<double>(*end) / watch.seconds();
}

absl::Status write_log(const Place& place, const HistoryOptions& options, uint64_t* records) {
  auto log = storage::open_log(place.log(), storage::LogMode::kWrite);
  if (!log.ok()) return log.status();
  History history(options);
  const absl::Status written = write_history(**log, &history);
  *records = history.records();
  return written;
}

}  // namespace

absl::StatusOr<Json> bench_replay(const BenchOptions& options) {
  spdlog::set_level(spdlog::level::off);
  auto place = Place::make(options.log);
  if (!place.ok()) return place.status();
  HistoryOptions history;
  history.cell = (*place)->log().cell;
  history.jobs_ended = options.jobs;
  uint64_t records = 0;
  if (absl::Status bad = write_log(**place, history, &records); !bad.ok()) return bad;
  auto raw = read_log(**place, history);
  if (!raw.ok()) return raw.status();
  auto memory = fold_log(**place, history, [](bool, std::string*) {
    return std::shared_ptr<storage::StateStore>(storage::make_memory_state_store());
  });
  if (!memory.ok()) return memory.status();
  auto rocks = fold_log(**place, history, [&](bool anew, std::string* said) {
    return server::open_state_directory((*place)->directory() + "/state", anew, said);
  });
  if (!rocks.ok()) return rocks.status();
  // A log in memory can be written, so that each of the two servers went on in its own way.
  const bool comparable = (*place)->log().kind != storage::LogAddress::Kind::kMemory;
  if (comparable && memory->digest != rocks->digest)
    return absl::InternalError(
        absl::StrCat("the digests differ: ", memory->digest, " in memory, ", rocks->digest, " in RocksDB"));
  Json out = tools::json_object();
  out["bench"] = "replay";
  out["log"] = options.log;
  out["jobs"] = options.jobs;
  out["records"] = records;
  out["per_s"] = rounded(memory->per_s);
  out["rocksdb_per_s"] = rounded(rocks->per_s);
  out["raw"] = {{"per_s", rounded(*raw)}};
  out["ratio"] = rounded(memory->per_s / *raw);
  out["ratio_rocksdb"] = rounded(rocks->per_s / *raw);
  return out;
}

}  // namespace muster::bench
