// `muster sim`: a scenario, run by the real engine, fold and planner in virtual time.
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/args.h"
#include "tools/cli/text.h"
#include "tools/sim/results.h"
#include "tools/sim/world.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

absl::StatusOr<std::string> read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::InvalidArgumentError(absl::StrCat(path, ": can't be read"));
  std::ostringstream out;
  out << in.rdbuf();
  if (out.str().size() > sim::kScenarioBytesMax)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has more than ", sim::kScenarioBytesMax, " bytes"));
  return out.str();
}

struct Files {
  std::string scenario, nodes, jobs;
};

absl::Status read_nodes(const std::string& path, sim::Scenario* scenario) {
  auto text = read_whole(path);
  if (!text.ok()) return text.status();
  if (absl::EndsWith(path, ".csv")) return sim::read_nodes_csv(*text, path, scenario);
  auto parsed = sim::parse_scenario(*text, path);
  if (!parsed.ok()) return parsed.status();
  scenario->nodes.insert(scenario->nodes.end(), parsed->nodes.begin(), parsed->nodes.end());
  return absl::OkStatus();
}

absl::Status read_jobs(const std::string& path, sim::Scenario* scenario) {
  auto text = read_whole(path);
  if (!text.ok()) return text.status();
  return absl::EndsWith(path, ".swf") ? sim::read_jobs_swf(*text, path, scenario)
                                      : sim::read_jobs_jsonl(*text, path, scenario);
}

absl::StatusOr<sim::Scenario> read_all(const Files& files) {
  sim::Scenario scenario;
  if (!files.scenario.empty()) {
    auto text = read_whole(files.scenario);
    if (!text.ok()) return text.status();
    auto parsed = sim::parse_scenario(*text, files.scenario);
    if (!parsed.ok()) return parsed.status();
    scenario = *std::move(parsed);
  }
  if (!files.nodes.empty()) {
    if (absl::Status bad = read_nodes(files.nodes, &scenario); !bad.ok()) return bad;
  }
  if (!files.jobs.empty()) {
    if (absl::Status bad = read_jobs(files.jobs, &scenario); !bad.ok()) return bad;
  }
  if (absl::Status bad = sim::finish_scenario(&scenario); !bad.ok()) return bad;
  return scenario;
}

void print_results(const Json& results) {
  const Json& metrics = results["metrics"];
  std::cout << "jobs          " << metrics["jobs"] << ", " << metrics["finished"] << " ended\n"
            << "makespan      " << metrics["makespan_s"] << " s\n"
            << "mean JCT      " << metrics["mean_jct_s"] << " s, p99 " << metrics["p99_jct_s"] << " s\n"
            << "mean wait     " << metrics["mean_wait_s"] << " s, bounded slowdown "
            << metrics["mean_bounded_slowdown"] << "\n"
            << "GPUs          " << metrics["gpu_utilisation"] << " used over time, "
            << metrics["gpu_allocated"] << " allocated at the end\n"
            << "rounds        " << metrics["rounds"] << ", " << metrics["records"] << " records, "
            << metrics["cpu_s"] << " s of CPU\n"
            << "violations    " << results["violations"].size() << "\n"
            << "digest        " << results["digest"].get<std::string>() << "\n";
}

}  // namespace

int sim_main(int argc, char** argv) {
  Arguments app("Runs a scenario in virtual time: the real engine, fold and planner, with simulated agents.",
                argv[0]);
  Files files;
  Common common;
  add_output(app, &common);
  app.add_option("SCENARIO", files.scenario, "the scenario, YAML")->type_name("");
  app.add_option("--nodes", files.nodes, "nodes: CSV, or the `nodes:` of a scenario")->type_name("FILE");
  app.add_option("--jobs", files.jobs, "jobs: one JSON object a line, or FILE.swf")->type_name("FILE");
  if (auto code = parse(app, argc, argv)) return *code;
  if (files.scenario.empty() && files.jobs.empty())
    return usage_error(app, "give a scenario, or --nodes and --jobs");
  const auto scenario = read_all(files);
  if (!scenario.ok()) {
    std::cerr << "muster sim: " << scenario.status().message() << "\n";
    return kUsage;
  }
  const std::clock_t before = std::clock();
  sim::World world(*scenario);
  if (absl::Status bad = world.run(); !bad.ok()) {
    std::cerr << "muster sim: " << bad.message() << "\n";
    return absl::IsInvalidArgument(bad) ? kUsage : kFailed;
  }
  const double cpu_s = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  const Json results = sim::results_json(world, cpu_s);
  if (common.json) {
    std::cout << line_of(results) << "\n";
  } else {
    print_results(results);
  }
  const std::vector<std::string> unmet = sim::unmet(scenario->expect, results);
  for (const std::string& line : unmet) std::cerr << "expected otherwise: " << line << "\n";
  for (const std::string& violation : world.violations()) std::cerr << "violation: " << violation << "\n";
  return unmet.empty() && world.violations().empty() ? kDone : kFailed;
}

}  // namespace muster::tools
