// The scenario file.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "queue/validate.h"
#include "tools/sim/read_parts.h"

namespace muster::sim {

using spec::Value;

absl::Status planned_here(const Value& value) {
  return value.planned(value.key());
}

namespace {

absl::Status read_amounts(const Value& value, google::protobuf::RepeatedPtrField<v1::Amount>* out) {
  out->Clear();
  return value.each("as in {gpu: 8}", [&](const Value& entry) {
    const std::string& resource = entry.key();
    if (resource != "cpu" && resource != "memory" && resource != "gpu" && !absl::StartsWith(resource, "gpu."))
      return entry.unknown_key({"cpu", "memory", "gpu"});
    v1::Amount* added = out->Add();
    added->set_resource(resource);
    int64_t amount = 0;
    const absl::Status read = spec::read_quantity(entry, spec::parser_of(resource), &amount);
    added->set_value(amount);
    return read;
  });
}

absl::Status read_delays(const Value& value, Scenario* scenario) {
  return value.each("as in {append: 10ms}", [&](const Value& entry) {
    if (entry.key() == "append") return entry.duration_ms(&scenario->append_delay_ms);
    if (entry.key() == "agent") return entry.duration_ms(&scenario->agent_delay_ms);
    if (entry.key() == "provider") return planned_here(entry);
    return entry.unknown_key({"append", "agent", "provider"});
  });
}

// What the planner does today is accepted by its name; the rest of the policy is planned.
absl::Status read_policy(const Value& value, Scenario* scenario) {
  return value.each("as in {node_lost: 5m}", [&](const Value& entry) {
    if (entry.key() == "node_lost") return entry.duration_ms(&scenario->node_lost_ms);
    std::string word;
    if (absl::Status bad = entry.text(&word); !bad.ok()) return bad;
    const std::vector<std::pair<std::string, std::string>> served = {
        {"order", "fifo"},    {"backfill", "greedy"}, {"fair", "none"},
        {"preempt", "false"}, {"migrate", "false"},   {"min_run", "0s"}};
    for (const auto& [key, only] : served) {
      if (entry.key() != key) continue;
      if (word == only) return absl::OkStatus();
      return entry.error(absl::StrCat("'", key, ": ", word,
                                      "' is planned and not served yet by this release, which has ", key,
                                      ": ", only));
    }
    return entry.unknown_key({"order", "backfill", "fair", "preempt", "migrate", "min_run", "node_lost"});
  });
}

absl::Status read_expectation(const Value& value, const std::string& file, Scenario* scenario) {
  std::string text;
  if (absl::Status bad = value.text(&text); !bad.ok()) return bad;
  const size_t colon = text.find(": ");
  if (colon == std::string::npos)
    return value.error("an expectation is \"PATH: VALUE\", as in \"jobs.X.started_s: 0..2\"");
  scenario->expect.push_back({file, text.substr(0, colon), text.substr(colon + 2)});
  return absl::OkStatus();
}

absl::Status read_top(const Value& entry, const std::string& file, Scenario* scenario) {
  const std::string& key = entry.key();
  if (key == "queues")
    return entry.each_element([&](const Value& one) {
      v1::QueueSpec& queue = scenario->queues.emplace_back();
      queue.set_weight(1);
      return read_queue_entry(one, &queue);
    });
  if (key == "nodes")
    return entry.each_element([&](const Value& one) { return read_node_entry(one, &scenario->nodes); });
  if (key == "jobs")
    return entry.each_element([&](const Value& one) { return read_job_entry(one, scenario); });
  if (key == "events")
    return entry.each_element([&](const Value& one) { return read_event_entry(one, scenario); });
  if (key == "expect")
    return entry.each_element([&](const Value& one) { return read_expectation(one, file, scenario); });
  if (key == "policy") return read_policy(entry, scenario);
  if (key == "delays") return read_delays(entry, scenario);
  if (key == "until") return entry.duration_ms(&scenario->until_ms);
  if (key == "groups" || key == "regions" || key == "autoscale") return planned_here(entry);
  return entry.unknown_key({"queues", "nodes", "jobs", "events", "expect", "policy", "delays", "until",
                            "groups", "regions", "autoscale"});
}

}  // namespace

absl::Status read_queue_entry(const Value& value, v1::QueueSpec* out) {
  const absl::Status read =
      value.each("as in {name: q1, weight: 2, quota: {gpu: 8}}", [&](const Value& entry) {
        int64_t weight = 0;
        if (entry.key() == "name") return entry.text(out->mutable_name());
        if (entry.key() == "weight") {
          const absl::Status status = entry.integer(1, 1'000'000, &weight);
          out->set_weight(static_cast<uint32_t>(weight));
          return status;
        }
        if (entry.key() == "quota") return read_amounts(entry, out->mutable_quota());
        if (entry.key() == "limit") return read_amounts(entry, out->mutable_limit());
        return entry.unknown_key({"name", "weight", "quota", "limit"});
      });
  if (!read.ok()) return read;
  if (absl::Status bad = queue::validate_queue_spec(*out, {nullptr, "queue"}); !bad.ok())
    return value.error(std::string(bad.message()));
  return absl::OkStatus();
}

absl::StatusOr<Scenario> parse_scenario(std::string_view text, const std::string& file) {
  if (text.size() > kScenarioBytesMax)
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": has ", text.size(), " bytes; a scenario has at most ", kScenarioBytesMax));
  const spec::Source source{file, "."};
  Scenario scenario;
  try {
    const YAML::Node top = YAML::Load(std::string(text));
    if (!top.IsMap()) return absl::InvalidArgumentError(absl::StrCat(file, ": a scenario must be a map"));
    const absl::Status read = Value(&source, "", "", top, top).each("", [&](const Value& entry) {
      return read_top(entry, file, &scenario);
    });
    if (!read.ok()) return read;
  } catch (const YAML::Exception& error) {
    return spec::not_yaml(file, error);
  }
  return scenario;
}

absl::Status finish_scenario(Scenario* scenario) {
  std::set<std::string_view> names;
  for (const ScenarioJob& job : scenario->jobs) {
    if (!names.insert(job.spec.name()).second)
      return absl::InvalidArgumentError(absl::StrCat("two jobs are named '", job.spec.name(), "'"));
  }
  std::set<std::string_view> nodes;
  for (const ScenarioNode& node : scenario->nodes) {
    if (!nodes.insert(node.name).second)
      return absl::InvalidArgumentError(absl::StrCat("two nodes are named '", node.name, "'"));
  }
  std::stable_sort(scenario->jobs.begin(), scenario->jobs.end(),
                   [](const ScenarioJob& a, const ScenarioJob& b) { return a.at_ms < b.at_ms; });
  std::stable_sort(scenario->events.begin(), scenario->events.end(),
                   [](const ScenarioEvent& a, const ScenarioEvent& b) { return a.at_ms < b.at_ms; });
  return absl::OkStatus();
}

}  // namespace muster::sim
