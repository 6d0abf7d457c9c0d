// `muster bench jobs`.
#include <spawn.h>
#include <sys/wait.h>

#include "absl/strings/str_cat.h"
#include "tools/bench/bench.h"
#include "tools/bench/load.h"
#include "tools/bench/measure.h"
#include "tools/bench/place.h"

namespace muster::bench {
namespace {

constexpr double kPatienceS = 60;

absl::Status until_a_node_is_up(BenchServer& server) {
  const StopWatch watch;
  while (watch.seconds() < kPatienceS) {
    v1::ListNodesReply nodes;
    if (absl::Status bad = server.client().call(&v1::Muster::Stub::ListNodes, {}, &nodes); !bad.ok())
      return bad;
    if (nodes.nodes_size() == 1 && nodes.nodes(0).connected()) return absl::OkStatus();
    tools::sleep_ms(10);
  }
  return absl::DeadlineExceededError(absl::StrCat("the agent did not come up within ", kPatienceS, " s"));
}

// All of them, looked at one by one.
absl::Status all_succeeded(BenchServer& server, uint64_t jobs) {
  uint64_t seen = 0;
  v1::ListJobsRequest request;
  request.set_all(true);
  request.set_limit(1'000);
  v1::ListJobsReply reply;
  do {
    if (absl::Status bad = server.client().call(&v1::Muster::Stub::ListJobs, request, &reply); !bad.ok())
      return bad;
    for (const v1::JobView& job : reply.jobs()) {
      if (job.state().phase() != v1::SUCCEEDED)
        return absl::InternalError(absl::StrCat("job ", job.state().id(), " is ",
                                                v1::Phase_Name(job.state().phase()), ": ",
                                                job.state().message()));
      request.set_before(job.state().id());
      ++seen;
    }
  } while (reply.more());
  if (seen == jobs) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(jobs, " jobs were submitted, and ", seen, " are there"));
}

absl::StatusOr<double> run_all(const Place& place, const BenchOptions& options) {
  Load load(trivial_job, 1, options.jobs, options.batch);
  auto server = BenchServer::start(place);
  if (!server.ok()) return server.status();
  if (absl::Status bad = (*server)->lead(); !bad.ok()) return bad;
  auto agent = Child::start({"agent", "--server", (*server)->address(), "--dir", place.directory() + "/agent",
                             "--name", "bench", "--cpu", "64", "--memory", "64Gi"},
                            place.directory() + "/agent.err");
  if (!agent.ok()) return agent.status();
  if (absl::Status bad = until_a_node_is_up(**server); !bad.ok()) return bad;
  const StopWatch watch;
  auto sent = load.send((*server)->address(), options.in_flight);
  if (!sent.ok()) return sent.status();
  if (absl::Status bad = (*server)->until_ended(options.jobs); !bad.ok()) return bad;
  const double seconds = watch.seconds();
  if (absl::Status bad = all_succeeded(**server, options.jobs); !bad.ok()) return bad;
  if (absl::Status bad = (*agent)->stop(); !bad.ok()) return bad;
  if (absl::Status bad = (*server)->process().stop(); !bad.ok()) return bad;
  return static_cast<double>(options.jobs) / seconds;
}

// One after another, each awaited.
absl::StatusOr<double> spawn_all(uint64_t count) {
  char program[] = "/bin/true";
  char* const arguments[] = {program, nullptr};
  char* const environment[] = {nullptr};
  const StopWatch watch;
  for (uint64_t i = 0; i < count; ++i) {
    pid_t pid = 0;
    int status = 0;
    if (posix_spawn(&pid, program, nullptr, nullptr, arguments, environment) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0)
      return absl::UnavailableError("/bin/true could not be run");
  }
  return static_cast<double>(count) / watch.seconds();
}

}  // namespace

absl::StatusOr<Json> bench_jobs(const BenchOptions& options) {
  auto place = Place::make(options.log);
  if (!place.ok()) return place.status();
  auto ours = run_all(**place, options);
  if (!ours.ok()) return ours.status();
  auto raw = spawn_all(options.jobs);
  if (!raw.ok()) return raw.status();
  Json out = tools::json_object();
  out["bench"] = "jobs";
  out["log"] = options.log;
  out["jobs"] = options.jobs;
  out["per_s"] = rounded(*ours);
  out["raw"] = {{"per_s", rounded(*raw)}};
  out["ratio"] = rounded(*ours / *raw);
  return out;
}

}  // namespace muster::bench
