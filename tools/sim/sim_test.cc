// Reading scenarios and workloads, running them, and comparing with what they expect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tools/sim/results.h"
#include "tools/sim/world.h"

namespace muster::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::string& text) {
  return std::string(parse_scenario(text, "s.yaml").status().message());
}

tools::Json results_of(Scenario scenario) {
  EXPECT_TRUE(finish_scenario(&scenario).ok());
  World world(scenario);
  EXPECT_EQ(world.run(), absl::OkStatus());
  EXPECT_THAT(world.violations(), testing::IsEmpty());
  return results_json(world, 0);
}

tools::Json results_of(const std::string& text) {
  auto scenario = parse_scenario(text, "s.yaml");
  EXPECT_EQ(scenario.status(), absl::OkStatus());
  return results_of(*std::move(scenario));
}

const char kTwoNodes[] = R"(
nodes: [{name: n, count: 2, cpu: 8, gpu: 8, gpu_model: a100}]
jobs:
  - {name: a, replicas: 2, resources: {cpu: 1, gpu: 8}, run: 10m}
  - {name: b, at: 1m, count: 2, every: 1m, resources: {cpu: 1, gpu: 4}, run: 5m}
)";

TEST(Scenario, AnErrorNamesTheLineAndWhatWouldBeRight) {
  EXPECT_EQ(error_of("nodes:\n  - {name: n, gpus: 8}\n"),
            "s.yaml:2: unknown key 'gpus'; did you mean 'gpu'?");
  EXPECT_THAT(error_of("jobs:\n  - {name: a, run: soon}\n"), HasSubstr("s.yaml:2: 'run': "));
  EXPECT_EQ(error_of("jobs:\n  - {run: 5m}\n"), "s.yaml:2: a job of a scenario must have a 'name'");
  EXPECT_EQ(error_of("events:\n  - {at: 1s, do: explode, node: n}\n"),
            "s.yaml:2: unknown event 'do: explode'");
  EXPECT_EQ(error_of("events:\n  - {at: 1s, do: crash}\n"),
            "s.yaml:2: 'crash' must say what: 'node', 'job' or 'name'");
  EXPECT_EQ(
      error_of("policy: {backfill: easy}\n"),
      "s.yaml:1: 'backfill: easy' is planned and not served yet by this release, which has backfill: greedy");
  EXPECT_EQ(error_of("groups: []\n"), "s.yaml:1: 'groups' is planned and not served yet by this release");
  EXPECT_THAT(error_of("nodes: [\n"), HasSubstr("not YAML"));
}

TEST(Scenario, TwoJobsOfOneNameAreRefused) {
  Scenario scenario = *parse_scenario("jobs: [{name: a}, {name: a}]", "s.yaml");
  EXPECT_EQ(finish_scenario(&scenario).message(), "two jobs are named 'a'");
}

TEST(Scenario, AnEventAboutWhatIsNotThereEndsTheRun) {
  Scenario scenario = *parse_scenario("events: [{at: 2s, do: crash, node: x}]", "s.yaml");
  World world(scenario);
  EXPECT_EQ(world.run().message(), "the event 'crash' at 2 s: there is no node 'x'");
}

TEST(World, TheSameScenarioGivesTheSameResults) {
  const tools::Json first = results_of(std::string(kTwoNodes));
  EXPECT_EQ(first, results_of(std::string(kTwoNodes)));
  EXPECT_EQ(first["jobs"].size(), 3u);
  EXPECT_EQ(first["metrics"]["makespan_s"], 900.0);  // a fills all until 600 s, then both b run
}

TEST(World, AQueueEventChangesWhatItNamesAndOnlyThat) {
  Scenario scenario = *parse_scenario(
      "queues: [{name: q, weight: 5, limit: {cpu: 2}}]\n"
      "events: [{at: 1s, do: queue, name: q, set: {weight: 1}}]\n",
      "s.yaml");
  World world(scenario);
  ASSERT_TRUE(world.run().ok());
  const v1::QueueSpec& queue = world.state().queues.at("q").spec();
  EXPECT_EQ(queue.weight(), 1u);
  EXPECT_EQ(queue.limit(0).value(), 2'000);
}

TEST(World, ATimeLimitEndsAJobThatRunsLonger) {
  const tools::Json results = results_of(
      "nodes: [{name: n}]\njobs: [{name: a, resources: {cpu: 1}, run: 1h, time_limit: 10m, stop: 5s}]");
  EXPECT_EQ(results["jobs"][0]["state"], "FAILED");
  EXPECT_EQ(results["jobs"][0]["reason"], "TIME_LIMIT");
  EXPECT_EQ(results["jobs"][0]["finished_s"], 605.0);
}

TEST(World, ProgressSurvivesARequeueWhereItIsKept) {
  const std::string text =
      "nodes: [{name: n}]\nevents: [{at: 4m, do: requeue, job: a}]\n"
      "jobs: [{name: a, resources: {cpu: 1}, run: 10m, progress: ";
  EXPECT_EQ(results_of(text + "exact}]")["jobs"][0]["finished_s"], 600.0);
  EXPECT_EQ(results_of(text + "none}]")["jobs"][0]["finished_s"], 840.0);
}

TEST(World, DelaysTakeVirtualTime) {
  const tools::Json results = results_of(absl::StrCat("delays: {append: 1s, agent: 2s}", kTwoNodes));
  EXPECT_GT(results["jobs"][0]["started_s"].get<double>(), 5);
  EXPECT_EQ(results["jobs"][0]["state"], "SUCCEEDED");
}

TEST(Expect, WhatIsOtherwiseIsSaid) {
  const tools::Json results = results_of(std::string(kTwoNodes));
  const auto check = [&](const std::string& path, const std::string& value) {
    return unmet({{"s.yaml", path, value}}, results);
  };
  EXPECT_THAT(check("jobs.a.finished_s", "600"), ElementsAre());
  EXPECT_THAT(check("jobs.b-1.started_s", "590..610"), ElementsAre());
  EXPECT_THAT(check("jobs.a.attempts.0.end", "SUCCEEDED"), ElementsAre());
  EXPECT_THAT(check("jobs.a.finished_s", "0..10"),
              ElementsAre("s.yaml: jobs.a.finished_s is 600.0, expected 0..10"));
  EXPECT_THAT(check("jobs.c.state", "FAILED"), ElementsAre("s.yaml: the results have no 'jobs.c.state'"));
}

TEST(Workload, NodesComeFromCsvAndJobsFromLines) {
  Scenario scenario;
  ASSERT_TRUE(
      read_nodes_csv("name,cpu_milli,memory_mib,gpu,model,rack\nn1,8000,1024,8,a100,r1\n", "n.csv", &scenario)
          .ok());
  ASSERT_TRUE(
      read_jobs_jsonl("{\"name\": \"a\", \"at\": \"5s\", \"resources\": {\"gpu\": 8}, \"run\": \"1m\"}\n",
                      "j.jsonl", &scenario)
          .ok());
  EXPECT_EQ(scenario.nodes[0].description.labels().at("rack"), "r1");
  EXPECT_EQ(results_of(scenario)["jobs"][0]["finished_s"], 65.0);
  EXPECT_EQ(
      read_nodes_csv("name,gpu\n", "n.csv", &scenario).message(),
      "n.csv:1: no column 'cpu_milli'; the first line must be name,cpu_milli,memory_mib,gpu,model and any "
      "labels");
  EXPECT_EQ(read_jobs_jsonl("\n{\"name\": \"b\", \"runn\": 1}\n", "j.jsonl", &scenario).message(),
            "j.jsonl:2: unknown key 'runn'; did you mean 'run'?");
}

TEST(Workload, TheStandardWorkloadFormat) {
  Scenario scenario = *parse_scenario("nodes: [{name: n, cpu: 4}]", "s.yaml");
  ASSERT_TRUE(read_jobs_swf("; a comment\n1 0 -1 60 4 -1 -1 4 90 -1 1 1 1 -1 -1 -1 -1 -1\n"
                            "2 10 -1 30 2 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n",
                            "w.swf", &scenario)
                  .ok());
  EXPECT_EQ(scenario.jobs[0].spec.expected_ms(), 90'000);
  EXPECT_EQ(scenario.jobs[1].spec.expected_ms(), 30'000);
  EXPECT_EQ(results_of(scenario)["jobs"][1]["started_s"], 60.0);
  EXPECT_EQ(read_jobs_swf("1 2 3\n", "w.swf", &scenario).message(),
            "w.swf:1: must be a line of the Standard Workload Format: 18 numbers");
}

}  // namespace
}  // namespace muster::sim
