// `muster bench NAME`: how fast it is, and what the log below it could do in the same run.
#include "tools/bench/bench.h"

#include <iostream>

#include "tools/cli/args.h"
#include "tools/cli/client.h"
#include "tools/cli/json.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

using bench::BenchOptions;
using Bench = absl::StatusOr<Json> (*)(const BenchOptions&);

constexpr const char* kFooter =
    R"(Prints one JSON object: per_s or p50_ms and p99_ms, the same of the raw log measured in the same run as `raw`,
and `ratio` = ours / raw. A server is started for it on a fresh log, and both are removed at the end.
Exit code: 0; 1 when what was to be measured did not happen, said on stderr.)";

CLI::App* add_bench(CLI::App& app, const std::string& name, const std::string& about, BenchOptions* options) {
  CLI::App* out = app.add_subcommand(name, about);
  out->add_option("--log", options->log, "embedded:[DIR], kafka:BROKERS/PREFIX or memory:; default embedded:")
      ->type_name("LOG");
  return out;
}

void add_jobs(CLI::App* app, uint64_t* jobs, const std::string& default_text) {
  app->add_option("--jobs", *jobs, "default " + default_text)
      ->type_name("N")
      ->check(CLI::Range(1, 10'000'000));
}

void add_load(CLI::App* app, BenchOptions* options) {
  app->add_option("--batch", options->batch, "jobs a request; default 100")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000));
  app->add_option("--in-flight", options->in_flight, "requests at a time; default 8")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000));
}

}  // namespace

int bench_main(int argc, char** argv) {
  Arguments app("Measures this program on this machine.", argv[0]);
  app.footer(kFooter);
  app.require_subcommand(1);
  BenchOptions submit, latency, replay, jobs, retention;
  submit.jobs = 200'000;
  latency.jobs = 500;
  replay.jobs = 200'000;
  jobs.jobs = 2'000;
  retention.jobs = 100'000;
  retention.ended = 20'000;
  CLI::App* one = add_bench(app, "submit", "jobs submitted, folded and answered a second", &submit);
  add_jobs(one, &submit.jobs, "200000");
  add_load(one, &submit);
  one = add_bench(app, "latency", "one job at a time: until the reply, and until its agent has it", &latency);
  add_jobs(one, &latency.jobs, "500");
  one = add_bench(app, "replay", "records that a server folds a second, in memory and with RocksDB", &replay);
  add_jobs(one, &replay.jobs, "200000, of five records each");
  std::vector<uint64_t> restart;
  one->add_option("--restart", restart,
                  "LIVE and ENDED jobs: measures how soon a killed server serves again, instead")
      ->type_name("N N")
      ->expected(2);
  one = add_bench(app, "jobs", "trivial jobs to completion a second, with a real agent", &jobs);
  add_jobs(one, &jobs.jobs, "2000");
  add_load(one, &jobs);
  one =
      add_bench(app, "retention", "submissions and memory before and after many jobs have ended", &retention);
  add_jobs(one, &retention.jobs, "100000");
  one->add_option("--warm-up", retention.ended, "jobs that end before; default 20000")->type_name("N");
  add_load(one, &retention);
  if (auto code = parse(app, argc, argv)) return *code;

  absl::StatusOr<Json> out = absl::InternalError("no bench");
  if (app.got_subcommand("submit")) out = bench::bench_submit(submit);
  if (app.got_subcommand("latency")) out = bench::bench_latency(latency);
  if (app.got_subcommand("jobs")) out = bench::bench_jobs(jobs);
  if (app.got_subcommand("retention")) out = bench::bench_retention(retention);
  if (app.got_subcommand("replay")) {
    if (!restart.empty()) {
      replay.live = restart[0];
      replay.ended = restart[1];
    }
    out = restart.empty() ? bench::bench_replay(replay) : bench::bench_restart(replay);
  }
  if (!out.ok()) return fail(out.status());
  std::cout << line_of(*out) << "\n";
  return kDone;
}

}  // namespace muster::tools
