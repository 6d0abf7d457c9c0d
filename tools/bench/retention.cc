// `muster bench retention`. History costs nothing: a round of submissions is measured before and after so
// many jobs have ended. While a round's jobs are submitted the agent answers nothing, so that only
// submissions are measured; then it answers, and all of the round's jobs end.
#include "absl/strings/str_cat.h"
#include "tools/bench/bench.h"
#include "tools/bench/fake_agent.h"
#include "tools/bench/load.h"
#include "tools/bench/measure.h"
#include "tools/bench/place.h"

namespace muster::bench {
namespace {

constexpr int kRounds = 5;  // before and after; the median counts

class Retention {
 public:
  Retention(BenchServer& server, FakeAgent& agent, const BenchOptions& options)
      : server_(server), agent_(agent), options_(options) {}

  // Submits jobs and waits until all have ended. Jobs submitted a second.
  absl::StatusOr<double> round(uint64_t jobs) {
    Load load(training_job, next_, jobs, options_.batch);
    next_ += jobs;
    agent_.answer(false);
    auto seconds = load.send(server_.address(), options_.in_flight);
    if (!seconds.ok()) return seconds.status();
    agent_.answer(true);
    if (absl::Status bad = server_.until_ended(next_ - 1); !bad.ok()) return bad;
    return static_cast<double>(jobs) / *seconds;
  }

  absl::Status rounds(uint64_t jobs, uint64_t each) {
    for (uint64_t done = 0; done < jobs; done += each) {
      if (auto rate = round(std::min(each, jobs - done)); !rate.ok()) return rate.status();
    }
    return absl::OkStatus();
  }

  struct Measured {
    double per_s = 0;
    int64_t rss_bytes = 0;
  };
  absl::StatusOr<Measured> measure(uint64_t jobs) {
    std::vector<double> rates, sizes;
    for (int i = 0; i < kRounds; ++i) {
      auto rate = round(jobs);
      if (!rate.ok()) return rate.status();
      auto rss = server_.process().rss_bytes();
      if (!rss.ok()) return rss.status();
      rates.push_back(*rate);
      sizes.push_back(static_cast<double>(*rss));
    }
    return Measured{quantile(rates, 500), static_cast<int64_t>(quantile(sizes, 500))};
  }

 private:
  BenchServer& server_;
  FakeAgent& agent_;
  const BenchOptions& options_;
  uint64_t next_ = 1;
};

Json json_of(const Retention::Measured& measured) {
  return {{"per_s", rounded(measured.per_s)}, {"rss_bytes", measured.rss_bytes}};
}

}  // namespace

absl::StatusOr<Json> bench_retention(const BenchOptions& options) {
  auto place = Place::make(options.log);
  if (!place.ok()) return place.status();
  auto server = BenchServer::start(**place);
  if (!server.ok()) return server.status();
  if (absl::Status bad = (*server)->lead(); !bad.ok()) return bad;
  auto agent = FakeAgent::connect((*server)->address());
  if (!agent.ok()) return agent.status();
  Retention retention(**server, **agent, options);
  const uint64_t each = std::max<uint64_t>(1, options.jobs / 25);
  if (absl::Status bad = retention.rounds(options.ended, each); !bad.ok()) return bad;
  auto before = retention.measure(each);
  if (!before.ok()) return before.status();
  if (absl::Status bad = retention.rounds(options.jobs, each); !bad.ok()) return bad;
  auto after = retention.measure(each);
  if (!after.ok()) return after.status();
  auto status = (*server)->status();
  if (!status.ok()) return status.status();
  if (status->refused() != 0 || status->live_jobs() != 0)
    return absl::InternalError(absl::StrCat(status->live_jobs(), " jobs are live at the end, and ",
                                            status->refused(), " records were refused"));
  agent->reset();
  if (absl::Status bad = (*server)->process().stop(); !bad.ok()) return bad;
  Json out = tools::json_object();
  out["bench"] = "retention";
  out["log"] = options.log;
  out["jobs"] = options.jobs;
  out["warm_up"] = options.ended;
  out["before"] = json_of(*before);
  out["after"] = json_of(*after);
  out["ratio_rate"] = rounded(after->per_s / before->per_s);
  out["ratio_memory"] =
      rounded(static_cast<double>(after->rss_bytes) / static_cast<double>(before->rss_bytes));
  return out;
}

}  // namespace muster::bench
