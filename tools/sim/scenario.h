// A scenario: what happens to a cell in virtual time. Plain data; read from YAML, or put together from a list
// of nodes (CSV) and a list of jobs (JSON lines, or the Standard Workload Format).
//
// Errors are INVALID_ARGUMENT "FILE:LINE: …". Times are milliseconds from the scenario's start.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/record.pb.h"

namespace muster::sim {

struct ScenarioNode {
  std::string name;
  v1::NodeDescription description;
};

// A member whose first run in the first attempt fails.
struct Failure {
  std::string task;  // empty: any
  uint32_t rank = 0;
  int64_t after_ms = 0;
  int code = 1;
  bool image = false;  // it can't be prepared
};

struct ScenarioJob {
  v1::JobSpec spec;  // its name is unique
  int64_t at_ms = 0;
  int64_t run_ms = 0;  // the true duration
  int64_t prepare_ms = 0;
  int64_t stop_ms = 0;  // from the signal to its end; the grace cuts it
  int exit = 0;
  bool keeps_progress = false;  // a new attempt goes on where the last one was
  std::vector<Failure> failures;
};

struct ScenarioEvent {
  int64_t at_ms = 0;
  std::string what;     // "crash", "cancel", …
  std::string subject;  // the node, job or queue; empty: none
  uint64_t step = 0;    // restart-server: so many engine steps later
  std::vector<std::pair<std::string, std::string>> set;
  int64_t gpus = 0;     // shrink
  ScenarioNode node;    // add-node
  v1::QueueSpec queue;  // queue: what it names; the rest is unset
};

struct Expectation {
  std::string where;  // the file
  std::string path;   // "jobs.X.started_s"
  std::string value;  // a value, or a range "0..2"
};

struct Scenario {
  std::vector<v1::QueueSpec> queues;
  std::vector<ScenarioNode> nodes;
  std::vector<ScenarioJob> jobs;  // by at_ms, then as given
  std::vector<ScenarioEvent> events;
  std::vector<Expectation> expect;
  int64_t until_ms = 0;  // 0: until nothing more can happen
  int64_t node_lost_ms = 300'000;
  int64_t append_delay_ms = 0;  // from an append to its being read back
  int64_t agent_delay_ms = 0;   // of each message between server and agent, one way
};

inline constexpr size_t kScenarioBytesMax = size_t{256} << 20;
inline constexpr size_t kScenarioJobsMax = 2'000'000;
inline constexpr size_t kScenarioNodesMax = 200'000;

absl::StatusOr<Scenario> parse_scenario(std::string_view text, const std::string& file);

// Each adds to what `scenario` has.
absl::Status read_nodes_csv(std::string_view text, const std::string& file, Scenario* scenario);
absl::Status read_jobs_jsonl(std::string_view text, const std::string& file, Scenario* scenario);
absl::Status read_jobs_swf(std::string_view text, const std::string& file, Scenario* scenario);
// After the last one: checks what needs the whole (names given twice, events about unknown things).
absl::Status finish_scenario(Scenario* scenario);

}  // namespace muster::sim
