// Jobs of a scenario: job.md's keys, and what a simulation adds.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "queue/validate.h"
#include "tools/sim/read_parts.h"
#include "tools/spec/readers.h"

namespace muster::sim {
namespace {

using spec::Value;

const std::vector<std::string> kKeys = {"at",   "run",  "count", "every",   "prepare",
                                        "stop", "exit", "fail",  "progress"};

struct Repeated {
  int64_t count = 1, every_ms = 0;
};

absl::Status read_failure(const Value& value, ScenarioJob* job) {
  Failure failure;
  const absl::Status read = value.each("as in {rank: 0, after: 5m, code: 1}", [&](const Value& entry) {
    int64_t number = 0;
    if (entry.key() == "task") return entry.text(&failure.task);
    if (entry.key() == "after") return entry.duration_ms(&failure.after_ms);
    if (entry.key() == "rank") {
      const absl::Status status = entry.integer(0, queue::kGangMembersMax - 1, &number);
      failure.rank = static_cast<uint32_t>(number);
      return status;
    }
    if (entry.key() == "code") {
      std::string word;
      if (absl::Status bad = entry.text(&word); !bad.ok()) return bad;
      failure.image = word == "image";
      if (failure.image) return absl::OkStatus();
      const absl::Status status = entry.integer(1, 255, &number);
      failure.code = static_cast<int>(number);
      return status;
    }
    return entry.unknown_key({"task", "rank", "after", "code"});
  });
  job->failures.push_back(std::move(failure));
  return read;
}

absl::Status read_progress(const Value& entry, ScenarioJob* job) {
  std::string word;
  if (absl::Status bad = entry.text(&word); !bad.ok()) return bad;
  if (word != "none" && word != "exact") return entry.error("'progress' must be none or exact");
  job->keeps_progress = word == "exact";
  return absl::OkStatus();
}

absl::Status read_extra(const Value& entry, ScenarioJob* job, Repeated* repeated) {
  const std::string& key = entry.key();
  int64_t number = 0;
  if (key == "at") return entry.duration_ms(&job->at_ms);
  if (key == "run") return entry.duration_ms(&job->run_ms);
  if (key == "every") return entry.duration_ms(&repeated->every_ms);
  if (key == "prepare") return entry.duration_ms(&job->prepare_ms);
  if (key == "stop") return entry.duration_ms(&job->stop_ms);
  if (key == "count") return entry.integer(1, static_cast<int64_t>(kScenarioJobsMax), &repeated->count);
  if (key == "progress") return read_progress(entry, job);
  if (key == "fail") {
    if (!entry.is_list()) return read_failure(entry, job);
    return entry.each_element([&](const Value& element) { return read_failure(element, job); });
  }
  const absl::Status status = entry.integer(0, 255, &number);
  job->exit = static_cast<int>(number);
  return status;
}

}  // namespace

absl::Status read_job_entry(const Value& value, Scenario* scenario) {
  ScenarioJob job;
  Repeated repeated;
  auto spec = spec::read_job(
      value,
      [&](const Value& entry) -> absl::StatusOr<bool> {
        if (std::find(kKeys.begin(), kKeys.end(), entry.key()) == kKeys.end()) return false;
        if (absl::Status bad = read_extra(entry, &job, &repeated); !bad.ok()) return bad;
        return true;
      },
      kKeys);
  if (!spec.ok()) return spec.status();
  job.spec = *std::move(spec);
  if (job.spec.name().empty()) return value.error("a job of a scenario must have a 'name'");
  for (v1::Task& task : *job.spec.mutable_tasks()) {
    if (task.command().empty() && task.script().empty()) task.add_command("simulated");
  }
  const std::string name = job.spec.name();
  const queue::FieldPath at{nullptr, name};
  if (absl::Status bad = queue::validate_and_fill(&job.spec, at); !bad.ok())
    return value.error(std::string(bad.message()));
  if (scenario->jobs.size() + static_cast<size_t>(repeated.count) > kScenarioJobsMax)
    return value.error(absl::StrCat("a scenario has at most ", kScenarioJobsMax, " jobs"));
  for (int64_t i = 0; i < repeated.count; ++i) {
    scenario->jobs.push_back(job);
    ScenarioJob& added = scenario->jobs.back();
    if (repeated.count > 1) added.spec.set_name(absl::StrCat(name, "-", i));
    added.at_ms += i * repeated.every_ms;
  }
  return absl::OkStatus();
}

}  // namespace muster::sim
