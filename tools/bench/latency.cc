// `muster bench latency`.
#include "absl/strings/str_cat.h"
#include "tools/bench/bench.h"
#include "tools/bench/fake_agent.h"
#include "tools/bench/load.h"
#include "tools/bench/measure.h"
#include "tools/bench/place.h"
#include "tools/bench/raw_log.h"

namespace muster::bench {
namespace {

constexpr uint64_t kWarmUp = 20;  // jobs before the first that counts

struct Latencies {
  std::vector<double> reply_ms, placed_ms;
};

absl::Status one_job(BenchServer& server, FakeAgent& agent, uint64_t number, Latencies* out) {
  v1::SubmitRequest request;
  *request.add_jobs() = training_job(number);
  v1::SubmitReply reply;
  const auto began = std::chrono::steady_clock::now();
  if (absl::Status bad = server.client().call(&v1::Muster::Stub::Submit, request, &reply); !bad.ok())
    return bad;
  const auto replied = std::chrono::steady_clock::now();
  if (reply.results(0).code() != 0 || reply.results(0).duplicate())
    return absl::InternalError(absl::StrCat("a job was refused: ", reply.results(0).error()));
  auto placed = agent.prepared_at(reply.results(0).id());
  if (!placed.ok()) return placed.status();
  using Ms = std::chrono::duration<double, std::milli>;
  out->reply_ms.push_back(Ms(replied - began).count());
  out->placed_ms.push_back(Ms(*placed - began).count());
  return absl::OkStatus();
}

absl::StatusOr<Latencies> submit_one_by_one(const Place& place, uint64_t jobs) {
  auto server = BenchServer::start(place);
  if (!server.ok()) return server.status();
  if (absl::Status bad = (*server)->lead(); !bad.ok()) return bad;
  Latencies out;
  {
    auto agent = FakeAgent::connect((*server)->address());
    if (!agent.ok()) return agent.status();
    for (uint64_t number = 1; number <= kWarmUp + jobs; ++number) {
      if (absl::Status bad = one_job(**server, **agent, number, &out); !bad.ok()) return bad;
      if (number == kWarmUp) out = {};
    }
  }
  if (absl::Status bad = (*server)->process().stop(); !bad.ok()) return bad;
  return out;
}

}  // namespace

absl::StatusOr<Json> bench_latency(const BenchOptions& options) {
  auto place = Place::make(options.log);
  if (!place.ok()) return place.status();
  if (absl::Status bad = check_has_raw(**place); !bad.ok()) return bad;
  auto ours = submit_one_by_one(**place, options.jobs);
  if (!ours.ok()) return ours.status();
  auto records = submitted_records(**place);
  if (!records.ok()) return records.status();
  if (records->size() != options.jobs + kWarmUp)
    return absl::InternalError(absl::StrCat("the log holds ", records->size(), " jobs, not those answered"));
  auto raw = raw_latencies_ms(**place, *records);
  if (!raw.ok()) return raw.status();
  raw->erase(raw->begin(), raw->begin() + kWarmUp);
  const double raw_p50 = quantile(*raw, 500);
  Json out = tools::json_object();
  out["bench"] = "latency";
  out["log"] = options.log;
  out["jobs"] = options.jobs;
  out["p50_ms"] = rounded(quantile(ours->reply_ms, 500));
  out["p99_ms"] = rounded(quantile(ours->reply_ms, 990));
  out["placed_p50_ms"] = rounded(quantile(ours->placed_ms, 500));
  out["placed_p99_ms"] = rounded(quantile(ours->placed_ms, 990));
  out["raw"] = {{"p50_ms", rounded(raw_p50)}, {"p99_ms", rounded(quantile(*raw, 990))}};
  out["ratio"] = rounded(quantile(ours->reply_ms, 500) / raw_p50);
  out["ratio_placed"] = rounded(quantile(ours->placed_ms, 500) / raw_p50);
  return out;
}

}  // namespace muster::bench
