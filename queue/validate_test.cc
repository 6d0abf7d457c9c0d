// Each limit of the job schema, with the words that people read.
#include "queue/validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace muster::queue {
namespace {

v1::JobSpec good() {
  v1::JobSpec spec;
  spec.add_tasks()->add_command("/usr/bin/train");
  return spec;
}

std::string error(const std::function<void(v1::JobSpec&)>& spoil) {
  v1::JobSpec spec = good();
  spoil(spec);
  const FieldPath jobs{nullptr, "jobs", 0};
  return std::string(validate_and_fill(&spec, {&jobs, "spec"}).message());
}

TEST(Validate, FillsTheDefaults) {
  v1::JobSpec spec = good();
  ASSERT_TRUE(validate_and_fill(&spec, {nullptr, "spec"}).ok());
  EXPECT_EQ(spec.name(), "train");
  EXPECT_EQ(spec.queue(), "default");
  EXPECT_EQ(spec.user(), "anonymous");
  EXPECT_EQ(spec.tasks(0).name(), "main");
  EXPECT_EQ(spec.tasks(0).replicas(), 1u);
  EXPECT_EQ(spec.tasks(0).resources().cpu_milli(), 1000);
  EXPECT_EQ(spec.grace_ms(), 30'000);
  EXPECT_EQ(spec.signal(), "TERM");
  EXPECT_EQ(spec.retries().own(), 0u);
  EXPECT_EQ(spec.retries().infrastructure(), 10u);
  EXPECT_EQ(spec.retries().start(), 5u);
  EXPECT_EQ(spec.start_limit_ms(), 600'000);
  EXPECT_EQ(spec.success(), "all");
}

TEST(Validate, ANameComesFromTheCommand) {
  const auto named = [](const std::string& command) {
    v1::JobSpec spec;
    spec.add_tasks()->add_command(command);
    EXPECT_TRUE(validate_and_fill(&spec, {nullptr, "spec"}).ok()) << command;
    return spec.name();
  };
  EXPECT_EQ(named("./a b"), "a-b");
  EXPECT_EQ(named("/opt/7"), "job-7");
  EXPECT_EQ(named("x/"), "job-");
}

struct Case {
  const char* message;
  std::function<void(v1::JobSpec&)> spoil;
};

TEST(Validate, SaysWhereWhatAndWhatIsAllowed) {
  const Case cases[] = {
      {"jobs[0].spec.tasks: 0 is not allowed; must be 1 to 64", [](auto& s) { s.clear_tasks(); }},
      {"jobs[0].spec.tasks[0].replicas: 8193 is not allowed; must be 1 to 8192 in all tasks together",
       [](auto& s) { s.mutable_tasks(0)->set_replicas(8193); }},
      {"jobs[0].spec.tasks[0].command: empty is not allowed; must be either command or script",
       [](auto& s) { s.mutable_tasks(0)->clear_command(); }},
      {"jobs[0].spec.tasks[0].command: a script beside it is not allowed; must be either command or script",
       [](auto& s) { s.mutable_tasks(0)->set_script("true"); }},
      {"jobs[0].spec.tasks[0].resources.gpu_milli: 1500 is not allowed; must be a multiple of 1000; shares "
       "of a "
       "device are not served yet",
       [](auto& s) { s.mutable_tasks(0)->mutable_resources()->set_gpu_milli(1500); }},
      {"jobs[0].spec.tasks[0].resources.cpu_milli: -5 is not allowed; must be 1 to 10000000",
       [](auto& s) { s.mutable_tasks(0)->mutable_resources()->set_cpu_milli(-5); }},
      {"jobs[0].spec.tasks[0].env: '1A' is not allowed; a variable's name is 1 to 128 letters, digits or "
       "'_', no "
       "digit first",
       [](auto& s) { (*s.mutable_tasks(0)->mutable_env())["1A"] = "x"; }},
      {"jobs[0].spec.tasks[0].require[0].values: 0 is not allowed; must be 1 to 64",
       [](auto& s) { s.mutable_tasks(0)->add_require()->set_label("zone"); }},
      {"jobs[0].spec.tasks[1].name: 'main' is not allowed; each task needs a name of its own",
       [](auto& s) {
         s.mutable_tasks(0)->set_name("main");
         *s.add_tasks() = s.tasks(0);
       }},
      {"jobs[0].spec.success: 'learner' is not allowed; must be all, or the name of a task",
       [](auto& s) { s.set_success("learner"); }},
      {"jobs[0].spec.name: '42' is not allowed; must be 1 to 128 letters, digits, '.', '_' or '-', and not "
       "only digits",
       [](auto& s) { s.set_name("42"); }},
      {"jobs[0].spec.queue: 'a//b' is not allowed; must be 1 to 8 levels of 1 to 64 letters, digits, '.', "
       "'_' or "
       "'-', as in research/vision",
       [](auto& s) { s.set_queue("a//b"); }},
      {"jobs[0].spec.user: 'a b' is not allowed; must be 1 to 128 letters, digits, '.', '_', '@' or '-'",
       [](auto& s) { s.set_user("a b"); }},
      {"jobs[0].spec.signal: 'SIGTERM' is not allowed; must be a signal's name, as in TERM, INT, USR1",
       [](auto& s) { s.set_signal("SIGTERM"); }},
      {"jobs[0].spec.workdir: 'here' is not allowed; must be an absolute path of at most 4096 bytes",
       [](auto& s) { s.set_workdir("here"); }},
      {"jobs[0].spec.after.ok[0]: '0' is not allowed; must be a job's id or name",
       [](auto& s) { s.mutable_after()->add_ok("0"); }},
      {"jobs[0].spec.array.count: 1000001 is not allowed; must be 1 to 1000000",
       [](auto& s) { s.mutable_array()->set_count(1'000'001); }},
      {"jobs[0].spec.array.count: 3 is not allowed; must be the number of the sweep's combinations, 2",
       [](auto& s) {
         s.mutable_array()->set_count(3);
         v1::SweepValues& sweep = *s.mutable_array()->add_sweep();
         sweep.set_parameter("lr");
         sweep.add_values("0.1");
         sweep.add_values("0.2");
       }},
      {"jobs[0].spec.time_limit_ms: -1 is not allowed; must be 0 to 316224000000",
       [](auto& s) { s.set_time_limit_ms(-1); }},
      {"jobs[0].spec.grace_ms: 86400001 is not allowed; must be 0 to 86400000",
       [](auto& s) { s.set_grace_ms(86'400'001); }},
      {"jobs[0].spec.priority: 1000001 is not allowed; must be -1000000 to 1000000",
       [](auto& s) { s.set_priority(1'000'001); }},
  };
  for (const Case& one : cases) EXPECT_EQ(error(one.spoil), one.message);
}

TEST(Validate, ARecordHasALimit) {
  const std::string message = error([](v1::JobSpec& spec) {
    for (int i = 0; i < 30; ++i) spec.mutable_tasks(0)->add_command(std::string(30'000, 'x'));
  });
  EXPECT_EQ(message.substr(message.find(" bytes")), " bytes is not allowed; must be at most 880000");
}

TEST(Validate, LongAndUnprintableTextsAreShownShort) {
  EXPECT_EQ(queue::quoted("a\nb"), "'a?b'");
  EXPECT_EQ(queue::quoted(std::string(100, 'x')), "'" + std::string(60, 'x') + "… (100 bytes)'");
}

TEST(Validate, UpdatesAreReadAsTheyAreTyped) {
  v1::UpdateRequest request;
  v1::Updated updated;
  EXPECT_EQ(
      std::string(parse_update(request, &updated).message()),
      "update: nothing is not allowed; must set priority, time_limit, expected, queue or array.running");
  (*request.mutable_set())["time_limit"] = "90m";
  ASSERT_TRUE(parse_update(request, &updated).ok());
  EXPECT_EQ(updated.time_limit_ms(), 5'400'000);
  (*request.mutable_set())["time_limit"] = "soon";
  EXPECT_EQ(std::string(parse_update(request, &updated).message()),
            "update.time_limit: 'soon' is not allowed; must be a time, as in 30s, 5m, 12h; 0: none");
  request.clear_set();
  (*request.mutable_set())["name"] = "x";
  EXPECT_EQ(std::string(parse_update(request, &updated).message()),
            "update: 'name' is not allowed; must be priority, time_limit, expected, queue or array.running");
}

}  // namespace
}  // namespace muster::queue
