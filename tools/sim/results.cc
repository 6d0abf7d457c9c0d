#include "tools/sim/results.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "tools/cli/job_view.h"

namespace muster::sim {
namespace {

using tools::Json;

constexpr double kSlowdownBoundS = 10;

double seconds(int64_t ms) {
  return static_cast<double>(ms) / 1000;
}
// From the scenario's start.
double since_start(int64_t cell_ms) {
  return seconds(cell_ms - World::kCellOrigin);
}

int64_t gpus_of(const v1::JobSpec& spec) {
  int64_t out = 0;
  for (const v1::Task& task : spec.tasks()) out += task.replicas() * task.resources().gpu_milli() / 1000;
  return out;
}

// Sums over all jobs that were submitted.
struct Totals {
  int64_t jobs = 0, finished = 0, first_ms = -1, last_ms = 0;
  int64_t evictions = 0, failed_attempts = 0;
  double jct_s = 0, wait_s = 0, slowdown = 0, gpu_s = 0, lost_gpu_s = 0;
  int64_t started = 0, gpus_held = 0;
  std::vector<double> jcts;
};

Json attempts_json(const Seen& seen, int64_t gpus, bool keeps_progress, int64_t end_ms, Totals* totals) {
  Json out = Json::array();
  for (const auto& [number, attempt] : seen.attempts) {
    Json one = Json::object();
    const bool ended = attempt.end() != v1::END_NONE && attempt.ended_ms() > 0;
    const int64_t until_ms = ended ? attempt.ended_ms() : end_ms;
    one["started_s"] = attempt.running_ms() > 0 ? Json(since_start(attempt.running_ms())) : Json(nullptr);
    one["ended_s"] = ended ? Json(since_start(attempt.ended_ms())) : Json(nullptr);
    one["end"] = ended ? Json(tools::end_name(attempt.end())) : Json(nullptr);
    Json nodes = Json::array();
    for (const v1::MemberState& member : attempt.members()) nodes.push_back(member.node());
    one["nodes"] = std::move(nodes);
    out.push_back(std::move(one));
    const double held_gpu_s = seconds(until_ms - attempt.placed_ms()) * static_cast<double>(gpus);
    totals->gpu_s += held_gpu_s;
    if (!ended) totals->gpus_held += gpus;
    if (attempt.end() == v1::END_PREEMPTED && ended) ++totals->evictions;
    if (attempt.end() == v1::END_FAILED || attempt.end() == v1::END_START_FAILED) ++totals->failed_attempts;
    if (ended && attempt.end() != v1::END_SUCCEEDED && !keeps_progress) totals->lost_gpu_s += held_gpu_s;
  }
  return out;
}

int64_t first_start_ms(const Seen& seen) {
  for (const auto& [number, attempt] : seen.attempts) {
    if (attempt.running_ms() > 0) return attempt.running_ms();
  }
  return -1;
}

Json job_json(const Seen& seen, const ScenarioJob& job, int64_t end_ms, Totals* totals) {
  const v1::JobState& state = seen.state;
  const bool ended = queue::terminal(state.phase());
  const int64_t started_ms = first_start_ms(seen);
  Json out = Json::object();
  out["name"] =
      state.element() == 0 ? state.name() : absl::StrCat(state.name(), "[", state.element() - 1, "]");
  out["state"] = tools::phase_name(state.phase());
  out["reason"] =
      state.reason() == v1::REASON_NONE ? Json(nullptr) : Json(tools::reason_name(state.reason()));
  out["submitted_s"] = since_start(state.submitted_ms());
  const bool last_started = !seen.attempts.empty() && seen.attempts.rbegin()->second.running_ms() > 0;
  out["started_s"] =
      last_started ? Json(since_start(seen.attempts.rbegin()->second.running_ms())) : Json(nullptr);
  out["finished_s"] = ended ? Json(since_start(state.ended_ms())) : Json(nullptr);
  out["wait_s"] = started_ms < 0 ? Json(nullptr) : Json(seconds(started_ms - state.submitted_ms()));
  out["attempts"] = attempts_json(seen, gpus_of(job.spec), job.keeps_progress, end_ms, totals);
  ++totals->jobs;
  if (totals->first_ms < 0 || state.submitted_ms() < totals->first_ms)
    totals->first_ms = state.submitted_ms();
  if (started_ms >= 0) {
    ++totals->started;
    totals->wait_s += seconds(started_ms - state.submitted_ms());
  }
  if (ended) {
    ++totals->finished;
    totals->last_ms = std::max(totals->last_ms, state.ended_ms());
    totals->jcts.push_back(seconds(state.ended_ms() - state.submitted_ms()));
    totals->jct_s += totals->jcts.back();
    const double run_s = seconds(job.run_ms);
    totals->slowdown += std::max(1.0, totals->jcts.back() / std::max(run_s, kSlowdownBoundS));
  }
  return out;
}

double mean(double sum, int64_t count) {
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

// The smallest value that at least 99 of 100 do not pass.
double p99(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::ceil(0.99 * static_cast<double>(values.size()))) - 1];
}

Json metrics_json(const World& world, const Totals& totals, double cpu_s) {
  int64_t gpus = 0;
  for (const auto& [name, node] : world.state().nodes) gpus += node.state.description().devices_size();
  const double makespan_s =
      totals.first_ms < 0 ? 0 : seconds(std::max<int64_t>(0, totals.last_ms - totals.first_ms));
  Json out = Json::object();
  out["jobs"] = totals.jobs;
  out["finished"] = totals.finished;
  out["makespan_s"] = makespan_s;
  out["mean_jct_s"] = mean(totals.jct_s, totals.finished);
  out["p99_jct_s"] = p99(totals.jcts);
  out["mean_wait_s"] = mean(totals.wait_s, totals.started);
  out["mean_bounded_slowdown"] = mean(totals.slowdown, totals.finished);
  const int64_t until_ms = totals.finished == totals.jobs ? totals.last_ms : world.end_ms();
  const double offered_s =
      totals.first_ms < 0 ? 0 : static_cast<double>(gpus) * seconds(until_ms - totals.first_ms);
  out["gpu_utilisation"] = offered_s > 0 ? totals.gpu_s / offered_s : 0.0;
  out["gpu_allocated"] = gpus > 0 ? static_cast<double>(totals.gpus_held) / static_cast<double>(gpus) : 0.0;
  out["preemptions"] = 0;  // the planner of this release decides none
  out["evictions"] = totals.evictions;
  out["failed_attempts"] = totals.failed_attempts;
  out["lost_gpu_s"] = totals.lost_gpu_s;
  out["cpu_s"] = cpu_s;
  out["rounds"] = world.rounds();
  out["records"] = world.records();
  return out;
}

Json refused_json(const ScenarioJob& job, const std::string& why) {
  Json out = Json::object();
  out["name"] = job.spec.name();
  out["state"] = "REFUSED";
  out["reason"] = why;
  out["attempts"] = Json::array();
  return out;
}

Json nodes_json(const World& world) {
  Json out = Json::array();
  for (const auto& [name, node] : world.state().nodes) {
    const v1::NodeState& state = node.state;
    Json one = Json::object();
    one["name"] = name;
    one["joined_s"] = seconds(state.joined_wall_ms() - World::kOrigin);
    one["gone_s"] =
        state.unreachable() || state.lost() ? Json(since_start(state.unreachable_ms())) : Json(nullptr);
    one["why"] = state.lost() ? Json("lost") : state.unreachable() ? Json("unreachable") : Json(nullptr);
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

tools::Json results_json(const World& world, double cpu_s) {
  Totals totals;
  Json jobs = Json::array();
  for (const auto& [key, seen] : world.jobs()) {
    const ScenarioJob* job = world.job_of(key.job);
    if (job != nullptr) jobs.push_back(job_json(seen, *job, world.end_ms(), &totals));
  }
  for (const ScenarioJob& job : world.scenario().jobs) {
    if (const std::string* why = world.refusal_of(job.spec.name())) jobs.push_back(refused_json(job, *why));
  }
  Json out = tools::json_object();
  out["policy"] = {{"order", "fifo"}, {"backfill", "greedy"}, {"fair", "none"}, {"preempt", false}};
  out["jobs"] = std::move(jobs);
  out["capacity"] = Json::array();
  out["nodes"] = nodes_json(world);
  out["metrics"] = metrics_json(world, totals, cpu_s);
  out["violations"] = world.violations();
  out["digest"] = world.digest();
  return out;
}

}  // namespace muster::sim
