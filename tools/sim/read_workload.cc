// Workloads beside the scenario file: nodes as CSV, jobs as JSON lines or in the Standard Workload Format
// (Chapin et al., Benchmarks and Standards for the Evaluation of Parallel Job Schedulers, JSSPP 1999).
#include <algorithm>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "queue/validate.h"
#include "tools/sim/read_parts.h"

namespace muster::sim {
namespace {

absl::Status at_line(const std::string& file, size_t line, std::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(file, ":", line, ": ", std::string(message)));
}

// Calls `read` with each line that is not empty.
absl::Status each_line(std::string_view text,
                       const std::function<absl::Status(size_t number, const std::string& line)>& read) {
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) end = text.size();
    std::string line(text.substr(begin, end - begin));
    if (!line.empty() && line.back() == '\r') line.pop_back();
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    if (absl::Status bad = read(number, line); !bad.ok()) return bad;
  }
  return absl::OkStatus();
}

absl::Status node_of_row(const std::vector<std::string>& names, const std::vector<std::string>& cells,
                         Scenario* scenario) {
  ScenarioNode node;
  int64_t cpu = 0, memory_mib = 0, gpus = 0;
  std::string model = "gpu";
  std::vector<std::pair<std::string, std::string>> labels;
  for (size_t i = 0; i < names.size(); ++i) {
    int64_t* number = names[i] == "cpu_milli"    ? &cpu
                      : names[i] == "memory_mib" ? &memory_mib
                      : names[i] == "gpu"        ? &gpus
                                                 : nullptr;
    if (number != nullptr &&
        (!absl::SimpleAtoi(cells[i], number) || *number < 0 || *number > int64_t{1} << 40))
      return absl::InvalidArgumentError(absl::StrCat(names[i], ": '", cells[i], "' must be a whole number"));
    if (names[i] == "name") node.name = cells[i];
    if (names[i] == "model" && !cells[i].empty()) model = cells[i];
    if (number == nullptr && names[i] != "name" && names[i] != "model" && !cells[i].empty())
      labels.emplace_back(names[i], cells[i]);
  }
  if (gpus > kGpusMax) return absl::InvalidArgumentError(absl::StrCat("gpu: a node has at most ", kGpusMax));
  if (absl::Status bad = queue::validate_node_name(node.name, {nullptr, "name"}); !bad.ok()) return bad;
  node.description = describe(cpu, memory_mib << 20, gpus, model);
  for (const auto& [label, value] : labels) (*node.description.mutable_labels())[label] = value;
  scenario->nodes.push_back(std::move(node));
  return absl::OkStatus();
}

}  // namespace

absl::Status read_nodes_csv(std::string_view text, const std::string& file, Scenario* scenario) {
  std::vector<std::string> names;
  return each_line(text, [&](size_t number, const std::string& line) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (names.empty()) {
      names = cells;
      for (const char* needed : {"name", "cpu_milli", "memory_mib", "gpu", "model"}) {
        if (std::find(names.begin(), names.end(), needed) == names.end())
          return at_line(
              file, number,
              absl::StrCat("no column '", needed,
                           "'; the first line must be name,cpu_milli,memory_mib,gpu,model and any labels"));
      }
      return absl::OkStatus();
    }
    if (cells.size() != names.size())
      return at_line(file, number,
                     absl::StrCat("has ", cells.size(), " cells, the first line ", names.size()));
    if (scenario->nodes.size() >= kScenarioNodesMax)
      return at_line(file, number, absl::StrCat("a scenario has at most ", kScenarioNodesMax, " nodes"));
    const absl::Status bad = node_of_row(names, cells, scenario);
    return bad.ok() ? bad : at_line(file, number, std::string(bad.message()));
  });
}

absl::Status read_jobs_jsonl(std::string_view text, const std::string& file, Scenario* scenario) {
  return each_line(text, [&](size_t number, const std::string& line) -> absl::Status {
    const spec::Source source{file, "."};
    try {
      const YAML::Node top = YAML::Load(line);  // JSON is YAML
      const absl::Status bad = read_job_entry(spec::Value(&source, "", "", top, top), scenario);
      if (bad.ok()) return bad;
      // Each line is a text of its own, whose lines are counted from 1.
      std::string message(bad.message());
      const std::string first = absl::StrCat(file, ":1: ");
      if (message.rfind(first, 0) == 0) message.erase(0, first.size());
      return at_line(file, number, message);
    } catch (const YAML::Exception& error) {
      return at_line(file, number, absl::StrCat("not JSON: ", error.msg));
    }
  });
}

absl::Status read_jobs_swf(std::string_view text, const std::string& file, Scenario* scenario) {
  // Fields, from 0: job 0, submit 1, run 3, allocated processors 4, requested processors 7, requested time 8.
  return each_line(text, [&](size_t number, const std::string& line) {
    if (line[0] == ';') return absl::OkStatus();
    const std::vector<std::string> fields = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t id = 0, submit = 0, run = 0, allocated = 0, requested = 0, estimate = 0;
    if (fields.size() < 9 || !absl::SimpleAtoi(fields[0], &id) || !absl::SimpleAtoi(fields[1], &submit) ||
        !absl::SimpleAtoi(fields[3], &run) || !absl::SimpleAtoi(fields[4], &allocated) ||
        !absl::SimpleAtoi(fields[7], &requested) || !absl::SimpleAtoi(fields[8], &estimate))
      return at_line(file, number, "must be a line of the Standard Workload Format: 18 numbers");
    const int64_t processors = requested > 0 ? requested : allocated;
    if (run < 0 || processors <= 0) return absl::OkStatus();  // it never ran
    ScenarioJob job;
    job.at_ms = submit * 1000;
    job.run_ms = run * 1000;
    job.spec.set_name(absl::StrCat("swf-", id));
    job.spec.set_expected_ms((estimate >= 0 ? estimate : run) * 1000);
    v1::Task& task = *job.spec.add_tasks();
    task.set_name("main");
    task.set_replicas(1);
    task.add_command("simulated");
    task.mutable_resources()->set_cpu_milli(processors * 1000);
    const absl::Status bad = queue::validate_and_fill(&job.spec, {nullptr, "job"});
    if (!bad.ok()) return at_line(file, number, std::string(bad.message()));
    scenario->jobs.push_back(std::move(job));
    return absl::OkStatus();
  });
}

}  // namespace muster::sim
