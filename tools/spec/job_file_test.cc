#include "tools/spec/job_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "tools/spec/nearest.h"

namespace muster::spec {
namespace {

using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;

std::string message_of(const std::string& text, const Overrides& overrides = {}) {
  const auto jobs = parse_job_file(text, "job.yaml", "/data/jobs", overrides);
  return jobs.ok() ? "no error" : std::string(jobs.status().message());
}

Given given(std::string_view name, const std::string& value) {
  for (const Option& option : options()) {
    if (option.name == name) return {&option, value};
  }
  ADD_FAILURE() << "no option " << name;
  return {};
}

std::string message_of_options(const std::vector<Given>& options) {
  const auto job = parse_job_options({options, {"true"}}, "/data/jobs");
  return job.ok() ? "no error" : std::string(job.status().message());
}

void expect_same(const v1::JobSpec& job, const std::string& expected_text) {
  v1::JobSpec expected;
  ASSERT_TRUE(TextFormat::ParseFromString(expected_text, &expected));
  std::string difference;
  MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(expected, job)) << difference;
}

constexpr const char* kEverything = R"(name: resnet50
queue: research/vision
user: ana
priority: -3
preemptible: true
replicas: 8
resources: {cpu: 500m, memory: 64Gi, gpu: 8, shm: 16Gi}
gpu_model: [a100, h100]
require: {zone: [us-east-1a], instance_type: p4d.24xlarge}
not: {rack: [r1, r2]}
prefer: {disk: ssd}
pack: "prefer: rack"
per_node: 2
command: [python, train.py, "--lr={lr}"]
processes: one
env: {LR: "0.1", EMPTY: "", "NULL": "~"}
image: none
workdir: /data/resnet
ports: {tensorboard: auto}
time_limit: 1h30m
expected: 3h
grace: 10s
signal: SIGUSR1
retries: {own: 1, infrastructure: 0, start: 7}
success: all
after: {ok: [12, prep], any: 13}
array: {running: 4}
sweep: {lr: [0.1, 0.01], seed: 0..2}
start_limit: 250ms
on_disconnect: {stop_after: 10m}
labels: {paper: iclr, site/rack.no: "4"}
hold: true
)";

TEST(JobFile, ReadsEveryKey) {
  const auto jobs = parse_job_file(kEverything, "job.yaml", "/");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1U);
  expect_same(jobs->front(), R"(
    name: "resnet50" queue: "research/vision" user: "ana" priority: -3 preemptible: true
    tasks {
      name: "main" replicas: 8
      resources { cpu_milli: 500 memory_bytes: 68719476736 gpu_milli: 8000 shm_bytes: 17179869184 }
      command: "python" command: "train.py" command: "--lr={lr}"
      env { key: "LR" value: "0.1" } env { key: "EMPTY" value: "" } env { key: "NULL" value: "~" }
      gpu_model: "a100" gpu_model: "h100"
      require { label: "zone" values: "us-east-1a" } require { label: "instance_type" values: "p4d.24xlarge" }
      exclude { label: "rack" values: "r1" values: "r2" }
      prefer { label: "disk" values: "ssd" }
      ports: "tensorboard" per_node: 2
    }
    pack { label: "rack" soft: true }
    time_limit_ms: 5400000 expected_ms: 10800000 grace_ms: 10000 signal: "USR1"
    retries { own: 1 infrastructure: 0 start: 7 }
    success: "all"
    after { ok: "12" ok: "prep" any: "13" }
    array {
      running: 4
      sweep { parameter: "lr" values: "0.1" values: "0.01" }
      sweep { parameter: "seed" values: "0" values: "1" values: "2" }
    }
    start_limit_ms: 250 on_disconnect { stop_after_ms: 600000 }
    labels { key: "paper" value: "iclr" } labels { key: "site/rack.no" value: "4" }
    hold: true workdir: "/data/resnet")");
}

constexpr const char* kTasks = R"(gpu_model: a100
per_node: 4
pack: rack
success: learner
tasks:
  - {name: learner, replicas: 1, resources: {cpu: 8, gpu: 8}, command: [./learner]}
  - name: actor
    replicas: 64
    resources: {cpu: 4}
    gpu_model: []
    script: |
      cd /data
      exec ./actor
    pack: none
    on_failure: restart
)";

TEST(JobFile, TasksTakeTheirDefaultsFromTheTop) {
  const auto jobs = parse_job_file(kTasks, "job.yaml", "/");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  expect_same(jobs->front(), R"(
    tasks {
      name: "learner" replicas: 1 resources { cpu_milli: 8000 gpu_milli: 8000 } command: "./learner"
      gpu_model: "a100" per_node: 4
    }
    tasks {
      name: "actor" replicas: 64 resources { cpu_milli: 4000 } script: "cd /data\nexec ./actor\n"
      per_node: 4 on_failure: ON_FAILURE_RESTART pack_none: true
    }
    pack { label: "rack" } success: "learner")");
}

TEST(JobFile, WhatIsPrintedReadsBackAsTheSame) {
  const std::string others =
      "script: \"no end of line\"\nretries: 3\non_disconnect: keep\n---\n"
      "script: |\n  two\n  lines\narray: 5\n---\ntasks: [{name: main, command: [a], on_failure: ignore}]\n";
  for (const std::string& text : {std::string(kEverything), std::string(kTasks), others}) {
    const auto jobs = parse_job_file(text, "job.yaml", "/");
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    for (const v1::JobSpec& job : *jobs) {
      const std::string printed = print_job_file(job);
      const auto again = parse_job_file(printed, "printed.yaml", "/");
      ASSERT_TRUE(again.ok()) << again.status() << "\n" << printed;
      EXPECT_TRUE(MessageDifferencer::Equals(job, again->front())) << printed;
    }
  }
}

TEST(JobFile, SeveralDocumentsAreSeveralJobs) {
  const auto jobs = parse_job_file("command: [a]\n---\ncommand: [b]\n---\n", "jobs.yaml", "/");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ((*jobs)[1].tasks(0).command(0), "b");
  EXPECT_EQ(message_of("command: [a]\n---\ncommand: [b]\nreplica: 2\n"),
            "job.yaml:4: unknown key 'replica'; did you mean 'replicas'?");
}

TEST(JobFile, UnknownKeysNameTheNearest) {
  EXPECT_EQ(message_of("name: x\ncommand: [a]\nreplicsa: 4\n"),
            "job.yaml:3: unknown key 'replicsa'; did you mean 'replicas'?");
  EXPECT_EQ(message_of("command: [a]\nfrobnicate: 4\n"), "job.yaml:2: unknown key 'frobnicate'");
  EXPECT_EQ(message_of("command: [a]\nresources:\n  gpus: 4\n"),
            "job.yaml:3: unknown key 'gpus'; did you mean 'gpu'?");
  EXPECT_EQ(message_of("command: [a]\nretries: {onw: 4}\n"),
            "job.yaml:2: unknown key 'onw'; did you mean 'own'?");
  EXPECT_EQ(message_of("tasks:\n- name: a\n  comand: [b]\n"),
            "job.yaml:3: unknown key 'comand'; did you mean 'command'?");
  EXPECT_EQ(message_of("command: [a]\narray: {cuont: 4}\n"),
            "job.yaml:2: unknown key 'cuont'; did you mean 'count'?");
}

TEST(JobFile, PlannedKeysAreRefusedByName) {
  const std::string end = " is planned and not served yet by this release";
  EXPECT_EQ(message_of("command: [a]\nsecrets: {K: a/b}\n"), "job.yaml:2: 'secrets'" + end);
  EXPECT_EQ(message_of("command: [a]\nmounts: []\n"), "job.yaml:2: 'mounts'" + end);
  EXPECT_EQ(message_of("command: [a]\ncheckpoint: 10m\n"), "job.yaml:2: 'checkpoint'" + end);
  EXPECT_EQ(message_of("command: [a]\nresize_every: 30m\n"), "job.yaml:2: 'resize_every'" + end);
  EXPECT_EQ(message_of("command: [a]\nnotify: []\n"), "job.yaml:2: 'notify'" + end);
  EXPECT_EQ(message_of("command: [a]\nimage: debian:12\n"), "job.yaml:2: 'image: debian:12'" + end);
  EXPECT_EQ(message_of("command: [a]\nprocesses: per_gpu\n"), "job.yaml:2: 'processes: per_gpu'" + end);
  EXPECT_EQ(message_of("command: [a]\nreplicas: {min: 4, max: 8}\n"),
            "job.yaml:2: 'replicas: {min, max}'" + end);
  EXPECT_EQ(message_of("command: [a]\nresources: {gpu: 0.5}\n"), "job.yaml:2: 'gpu below 1'" + end);
  EXPECT_EQ(message_of("command: [a]\nresources: {gpu_memory: 10Gi}\n"), "job.yaml:2: 'gpu_memory'" + end);
  EXPECT_EQ(message_of("command: [a]\nworkdir: src\n"),
            "job.yaml:2: 'workdir: src' (a snapshot that travels with the job) is planned and not served yet "
            "by this "
            "release; give an absolute path that every node has, as in /data/jobs/src");
}

TEST(JobFile, WrongValuesSayWhatIsAllowed) {
  const std::pair<const char*, const char*> cases[] = {
      {"command: [a]\nreplicas: many", "job.yaml:2: 'replicas': 'many' is not a whole number from 1 to 8192"},
      {"command: [a]\nreplicas: 0", "job.yaml:2: 'replicas': '0' is not a whole number from 1 to 8192"},
      {"command: [a]\npreemptible: 1", "job.yaml:2: 'preemptible' must be true or false"},
      {"command: [a]\nname: [x]", "job.yaml:2: 'name' must be one value, not a list"},
      {"command: [a]\nname:", "job.yaml:2: 'name' must be one value, not empty"},
      {"command: [a]\nenv: [x]", "job.yaml:2: 'env' must be a map, as in {LR: \"0.1\"}"},
      {"command: [a]\ntime_limit: soon",
       "job.yaml:2: 'time_limit': 'soon' is not a time; write 250ms, 30s, 10m, 1h30m, 7d or a number of "
       "seconds"},
      {"command: [a]\nresources: {gpu: 1.5}", "job.yaml:2: 'gpu' must be a whole number of devices"},
      {"command: [a]\nports: {tb: 6006}", "job.yaml:2: port 'tb' must be auto"},
      {"command: [a]\nprocesses: two", "job.yaml:2: 'processes' must be one"},
      {"command: [a]\non_disconnect: stop", "job.yaml:2: 'on_disconnect' must be keep, or {stop_after: 10m}"},
      {"command: [a]\npack: \"prefer:\"",
       "job.yaml:2: 'pack' must be a node label, as in rack, or \"prefer: rack\""},
      {"command: [a]\nsweep: {s: 9..0}", "job.yaml:2: '9..0' must run upwards over at most 100000 values"},
      {"command: [a]\nsweep: {s: []}", "job.yaml:2: 's' must have 1 to 100000 values"},
      {"command: [a]\nreplicas: 1\nreplicas: 2", "job.yaml:3: 'replicas' is given twice"},
      {"command: python train.py",
       "job.yaml:1: 'command' must be a list of words, as in [python, train.py]; a line of shell is "
       "'script'"},
      {"command: []", "job.yaml:1: 'command' must have at least one word"},
      {"name: x", "job.yaml:1: the job has no 'command' and no 'script'"},
      {"command: [a]\nscript: b", "job.yaml:1: the job has both 'command' and 'script'; give one"},
      {"[a, b]", "job.yaml:1: a job must be a map, as in {replicas: 4, command: [./train]}"},
      {"", "job.yaml: has no job"},
      {"command: [a\nname: b", "job.yaml:2: not YAML: end of sequence flow not found"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(message_of(text), message) << text;
}

TEST(JobFile, TasksAndTheTopDoNotMix) {
  const std::pair<const char*, const char*> cases[] = {
      {"replicas: 2\ntasks: [{name: a, command: [b]}]",
       "job.yaml:1: 'replicas' belongs into each task, since there are 'tasks'"},
      {"command: [a]\non_failure: ignore", "job.yaml:2: 'on_failure' belongs into a task of 'tasks'"},
      {"tasks:\n- {name: a, command: [b], queue: c}", "job.yaml:2: 'queue' is the job's, not a task's"},
      {"tasks:\n- {command: [b]}", "job.yaml:2: a task must have a 'name'"},
      {"tasks:\n- {name: a}", "job.yaml:2: task 'a' has no 'command' and no 'script'"},
      {"tasks: []", "job.yaml:1: 'tasks' must have at least one task"},
      {"tasks: a", "job.yaml:1: 'tasks' must be a list"},
      {"tasks:\n- {name: a, command: [b], pack: rack}",
       "job.yaml:2: 'pack' of a task must be none; the label is the job's"},
      {"tasks:\n- {name: a, command: [b], on_failure: panic}",
       "job.yaml:2: 'on_failure' must be stop, ignore or restart"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(message_of(text), message) << text;
}

TEST(JobFile, HasALimit) {
  EXPECT_EQ(message_of(std::string(kFileBytesMax + 1, '#')),
            "job.yaml: has 1048577 bytes; a job file has at most 1048576");
}

TEST(JobOptions, LieOverTheFile) {
  const Overrides overrides{
      {given("replicas", "2"), given("gpu", "1"), given("env", "B=2=3"), given("retries", "5")},
      {"./other", "-x"}};
  const auto jobs = parse_job_file(
      "replicas: 8\nresources: {cpu: 4, gpu: 8}\nenv: {A: 1}\nscript: run\nretries: {start: 9}\n", "job.yaml",
      "/", overrides);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  expect_same(jobs->front(), R"(
    tasks {
      name: "main" replicas: 2 resources { cpu_milli: 4000 gpu_milli: 1000 } command: "./other" command: "-x"
      env { key: "A" value: "1" } env { key: "B" value: "2=3" }
    }
    retries { own: 5 })");
}

TEST(JobOptions, MakeAJobOfTheirOwn) {
  const auto job = parse_job_options(
      {{given("array", "10"), given("array-running", "3"), given("after-ok", "1,prep"),
        given("pack", "prefer=rack"), given("require", "zone=a,b"), given("require", "disk=ssd"),
        given("hold", "true"), given("label", "a=b"), given("on-disconnect", "stop_after=1m"),
        given("gpu-model", "a100,h100"), given("retries", "own=1,start=2")},
       {"true"}},
      "/");
  ASSERT_TRUE(job.ok()) << job.status();
  expect_same(*job, R"(
    tasks {
      name: "main" command: "true" gpu_model: "a100" gpu_model: "h100"
      require { label: "zone" values: "a" values: "b" } require { label: "disk" values: "ssd" }
    }
    pack { label: "rack" soft: true } after { ok: "1" ok: "prep" } array { count: 10 running: 3 }
    on_disconnect { stop_after_ms: 60000 } retries { own: 1 start: 2 } hold: true
    labels { key: "a" value: "b" })");
}

TEST(JobOptions, ErrorsNameTheOption) {
  EXPECT_EQ(message_of_options({given("gpu", "0.5")}),
            "--gpu: 'gpu below 1' is planned and not served yet by this release");
  EXPECT_EQ(message_of_options({given("time-limit", "5x")}),
            "--time-limit: '5x' is not a time; write 250ms, 30s, 10m, 1h30m, 7d or a number of seconds");
  EXPECT_EQ(message_of_options({given("env", "LR")}), "--env LR: must be NAME=VALUE");
  EXPECT_EQ(message_of_options({given("retries", "wrong=1")}), "--retries: unknown key 'wrong'");
  EXPECT_EQ(message_of_options({given("image", "debian")}),
            "--image: 'image: debian' is planned and not served yet by this release");
  EXPECT_EQ(message_of("tasks: [{name: a, command: [b]}]", {{given("replicas", "2")}, {}}),
            "--replicas: 'replicas' belongs into each task, since there are 'tasks'");
  EXPECT_EQ(message_of("tasks: [{name: a, command: [b]}]", {{}, {"true"}}),
            "the command after --: 'command' belongs into each task, since there are 'tasks'");
}

// Every option's path is a key of the schema: none is unknown to it.
TEST(JobOptions, AreKeysOfTheSchema) {
  for (const Option& option : options()) {
    const bool map = option.kind == OptionKind::kMap || option.kind == OptionKind::kMapOfLists;
    EXPECT_THAT(message_of_options({{&option, map ? "a=1" : "1"}}),
                testing::Not(testing::HasSubstr("unknown key")))
        << option.name;
  }
}

TEST(Nearest, OnlyWhatIsNear) {
  EXPECT_EQ(nearest("subnit", {"submit", "show"}), "submit");
  EXPECT_EQ(nearest("sl", {"ls", "show"}), "ls");
  EXPECT_EQ(nearest("zebra", {"ls", "show"}), "");
  EXPECT_EQ(did_you_mean("zebra", {"ls"}), "");
}

}  // namespace
}  // namespace muster::spec
