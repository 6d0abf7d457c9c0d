// `muster bench submit`.
#include "absl/strings/str_cat.h"
#include "tools/bench/bench.h"
#include "tools/bench/load.h"
#include "tools/bench/measure.h"
#include "tools/bench/place.h"
#include "tools/bench/raw_log.h"

namespace muster::bench {
namespace {

// Sends the jobs to a server of their own; gives the jobs a second.
absl::StatusOr<double> submit_all(const Place& place, const BenchOptions& options) {
  Load load(training_job, 1, options.jobs, options.batch);
  auto server = BenchServer::start(place);
  if (!server.ok()) return server.status();
  if (absl::Status bad = (*server)->lead(); !bad.ok()) return bad;
  auto seconds = load.send((*server)->address(), options.in_flight);
  if (!seconds.ok()) return seconds.status();
  auto status = (*server)->status();
  if (!status.ok()) return status.status();
  if (status->live_jobs() != options.jobs || status->refused() != 0)
    return absl::InternalError(absl::StrCat(options.jobs, " jobs were submitted; the server has ",
                                            status->live_jobs(), " and refused ", status->refused()));
  if (absl::Status bad = (*server)->process().stop(); !bad.ok()) return bad;
  return static_cast<double>(options.jobs) / *seconds;
}

}  // namespace

absl::StatusOr<Json> bench_submit(const BenchOptions& options) {
  auto place = Place::make(options.log);
  if (!place.ok()) return place.status();
  if (absl::Status bad = check_has_raw(**place); !bad.ok()) return bad;
  auto ours = submit_all(**place, options);
  if (!ours.ok()) return ours.status();
  auto records = submitted_records(**place);
  if (!records.ok()) return records.status();
  if (records->size() != options.jobs)
    return absl::InternalError(
        absl::StrCat(options.jobs, " jobs were answered, and the log holds ", records->size()));
  auto raw = raw_per_s(**place, *records, options.batch);
  if (!raw.ok()) return raw.status();
  size_t bytes = 0;
  for (const storage::LogEntry& record : *records) bytes += record.key.size() + record.value.size();
  Json out = tools::json_object();
  out["bench"] = "submit";
  out["log"] = options.log;
  out["jobs"] = options.jobs;
  out["batch"] = options.batch;
  out["in_flight"] = options.in_flight;
  out["record_bytes"] = bytes / records->size();
  out["per_s"] = rounded(*ours);
  out["raw"] = {{"per_s", rounded(*raw)}};
  out["ratio"] = rounded(*ours / *raw);
  return out;
}

}  // namespace muster::bench
