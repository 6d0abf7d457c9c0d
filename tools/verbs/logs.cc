// `muster logs`: what the members of a job have written.
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/args.h"
#include "tools/cli/follow.h"
#include "tools/cli/job_view.h"
#include "tools/cli/names.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

constexpr const char* kFooter = R"(With several ranks each line has "[rank] " before it.

Examples:
  muster logs 12 --rank 0
  muster logs -f 12.actor.3
  muster logs 12@1          the first attempt)";

absl::Status read_rank(const std::string& text, int32_t* rank) {
  if (text == "all") return absl::OkStatus();
  if (absl::SimpleAtoi(text, rank) && *rank >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--rank ", text, ": must be a rank, as in 0, or all"));
}

}  // namespace

int logs_main(int argc, char** argv) {
  Arguments app("Prints the output of a job's members.", argv[0]);
  Common common;
  std::string name, rank_text = "all";
  bool follow = false;
  WaitOptions options;
  options.for_capacity = true;
  add_server(app, &common);
  add_output(app, &common);
  app.add_option("ID", name, "12, 12[3], 12.actor.0, 12@2 or the job's name")->type_name("")->required();
  app.add_flag("-f,--follow", follow, "until the job has ended, through all its attempts");
  app.add_option("-r,--rank", rank_text, "only this rank; default all")->type_name("R|all");
  app.footer(kFooter);
  if (auto code = parse(app, argc, argv)) return *code;
  const absl::StatusOr<JobName> job = parse_job_name(name);
  if (!job.ok()) return fail(job.status());
  int32_t rank = -1;
  if (absl::Status bad = read_rank(rank_text, &rank); !bad.ok()) return fail(bad);

  Client client(common.server);
  const absl::StatusOr<v1::JobView> view = get_job(client, job->job, true);
  if (!view.ok()) return fail(view.status());
  if (job->rank.has_value() || !job->task.empty()) {
    const absl::StatusOr<uint32_t> of_member = rank_of(*job, view->spec());
    if (!of_member.ok()) return fail(of_member.status());
    rank = static_cast<int32_t>(*of_member);
  }
  uint32_t members = 0;
  for (const v1::Task& task : view->spec().tasks()) members += task.replicas();
  LogPrinter printer(std::cout, rank < 0 && members > 1, common.json);
  v1::LogsRequest request;
  *request.mutable_job() = job->job;
  request.mutable_job()->set_id(view->state().id());
  request.mutable_job()->clear_name();
  request.set_attempt(job->attempt);
  request.set_rank(rank);
  absl::Status status;
  if (follow && job->attempt == 0) {
    status = follow_job(client, request.job(), request, options, &printer).status();
  } else {
    request.set_follow(follow);
    status = print_logs(client, request, options.patience_ms, &printer);
    printer.finish();
  }
  return status.ok() ? kDone : fail(status);
}

}  // namespace muster::tools
