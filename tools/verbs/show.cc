// `muster show`: one job, with its attempts and members.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/records.h"
#include "tools/cli/args.h"
#include "tools/cli/follow.h"
#include "tools/cli/job_view.h"
#include "tools/cli/names.h"
#include "tools/cli/text.h"
#include "tools/spec/job_file.h"
#include "tools/spec/quantity.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

constexpr int kMembersShown = 64;

void line(const std::string& what, const std::string& text) {
  if (!text.empty()) std::cout << "  " << what << std::string(12 - what.size(), ' ') << text << "\n";
}

std::string command_words(const v1::Task& task) {
  if (!task.script().empty()) return "script";
  return one_line(absl::StrJoin(task.command(), " "), 80);
}

std::string task_words(const v1::Task& task) {
  const v1::Resources& r = task.resources();
  std::string out =
      absl::StrCat(task.name(), " × ", task.replicas(), ": cpu ", spec::print_cpu(r.cpu_milli()));
  if (r.memory_bytes() > 0) absl::StrAppend(&out, ", memory ", spec::print_bytes(r.memory_bytes()));
  if (r.gpu_milli() > 0) absl::StrAppend(&out, ", gpu ", spec::print_gpu(r.gpu_milli()));
  if (!task.gpu_model().empty()) absl::StrAppend(&out, " of ", absl::StrJoin(task.gpu_model(), " or "));
  return absl::StrCat(out, "; ", command_words(task));
}

void print_members(const v1::AttemptState& attempt, const v1::JobSpec& spec) {
  Table table({">RANK", "MEMBER", "NODE", "DEVICES", "STATE", ">EXIT", "OUTPUT"});
  for (int rank = 0; rank < std::min(attempt.members_size(), kMembersShown); ++rank) {
    const v1::MemberState& member = attempt.members(rank);
    const TaskOfRank task = task_of_rank(spec, static_cast<uint32_t>(rank));
    const bool exited = member.phase() == v1::MEMBER_EXITED && member.started();
    std::string state = member_phase_name(member.phase());
    if (member.run() > 1) absl::StrAppend(&state, " (run ", member.run(), ")");
    if (!member.message().empty()) absl::StrAppend(&state, ": ", one_line(member.message(), 60));
    table.add({absl::StrCat(rank), absl::StrCat(task.task, ".", task.index), member.node(),
               absl::StrJoin(member.devices(), ","), state, exited ? absl::StrCat(member.exit_code()) : "-",
               exited ? spec::short_bytes(member.output_bytes()) : "-"});
  }
  table.print(std::cout, "    ");
  if (attempt.members_size() > kMembersShown)
    std::cout << "    and " << attempt.members_size() - kMembersShown << " more members: -o json shows all\n";
}

void print_attempt(const v1::AttemptState& attempt, const v1::JobSpec& spec, int64_t now_ms) {
  std::cout << "  attempt " << attempt.number() << " at position " << attempt.fence().position()
            << ": placed " << when_text(attempt.placed_wall_ms(), now_ms);
  if (attempt.running_wall_ms() > 0)
    std::cout << ", running from " << clock_text(attempt.running_wall_ms(), now_ms);
  if (attempt.end() != v1::END_NONE) {
    std::cout << ", " << end_name(attempt.end()) << " " << when_text(attempt.ended_wall_ms(), now_ms);
    if (attempt.reason() != v1::REASON_NONE) std::cout << " by " << reason_name(attempt.reason());
    if (attempt.cause_rank() > 0) std::cout << " of rank " << attempt.cause_rank() - 1;
  }
  if (!attempt.message().empty()) std::cout << ": " << one_line(attempt.message());
  std::cout << "\n";
  print_members(attempt, spec);
}

void print_job(const v1::JobView& view) {
  const v1::JobState& state = view.state();
  const int64_t now_ms = wall_ms();
  std::cout << "job " << job_name(state.id(), state.element()) << "  " << state.name() << "\n";
  const std::string why = why_words(state, view.pending_reason());
  line("state",
       absl::StrCat(phase_name(state.phase()), view.unreachable() ? ", a node of it is out of reach" : "",
                    why.empty() ? "" : ": ", one_line(why)));
  if (terminal(state.phase())) line("exit", absl::StrCat(state.job_exit()));
  line("queue", absl::StrCat(state.queue(), ", user ", state.user(), ", priority ", state.priority()));
  line("submitted", when_text(state.submitted_wall_ms(), now_ms));
  if (state.ended_wall_ms() > 0) line("ended", when_text(state.ended_wall_ms(), now_ms));
  if (state.time_limit_ms() > 0) {
    const int64_t began = terminal(state.phase()) ? 0 : state.attempt().running_wall_ms();
    line("time limit",
         absl::StrCat(spec::print_duration(state.time_limit_ms()), began == 0 ? "" : ", reached at ",
                      began == 0 ? "" : when_text(began + state.time_limit_ms(), now_ms)));
  }
  if (state.retry_of() > 0) line("retry of", absl::StrCat(state.retry_of()));
  if (!state.waits().empty()) {
    std::vector<std::string> jobs;
    for (const v1::Dependency& wait : state.waits()) jobs.push_back(absl::StrCat(wait.job()));
    line("waits for", "jobs " + absl::StrJoin(jobs, ", "));
  }
  const uint32_t failures = state.own_failures() + state.infrastructure_failures() + state.start_failures();
  if (failures > 0)
    line("failures", absl::StrCat(state.own_failures(), " own, ", state.infrastructure_failures(),
                                  " infrastructure, ", state.start_failures(), " start"));
  for (const v1::Task& task : view.spec().tasks()) line("task", task_words(task));
  for (const v1::AttemptState& attempt : state.past()) print_attempt(attempt, view.spec(), now_ms);
  if (state.has_attempt()) print_attempt(state.attempt(), view.spec(), now_ms);
}

}  // namespace

int show_main(int argc, char** argv) {
  Arguments app("Shows one job: its state, attempts and members.", argv[0]);
  Common common;
  std::string name;
  bool spec = false;
  add_server(app, &common);
  add_output(app, &common);
  app.add_option("ID", name, "12, 12[3] or the job's name")->type_name("")->required();
  app.add_flag("--spec", spec, "the job file that makes the same job");
  if (auto code = parse(app, argc, argv)) return *code;
  const absl::StatusOr<JobName> job = parse_job_name(name);
  if (!job.ok()) return fail(job.status());
  Client client(common.server);
  const absl::StatusOr<v1::JobView> view = get_job(client, job->job, true);
  if (!view.ok()) return fail(view.status());
  if (spec) {
    std::cout << spec::print_job_file(view->spec());
  } else if (common.json) {
    std::cout << line_of(job_json(*view)) << "\n";
  } else {
    print_job(*view);
  }
  return kDone;
}

}  // namespace muster::tools
