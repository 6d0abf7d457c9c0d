// `muster submit`: job files or a command → jobs. Prints their ids, one a line.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "tools/cli/follow.h"
#include "tools/cli/job_arguments.h"
#include "tools/cli/json.h"
#include "tools/cli/submitter.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

constexpr const char* kExamples = R"(Examples:
  muster submit job.yaml
  muster submit --replicas 4 --gpu 8 --time-limit 12h -- python train.py
  muster submit --sweep lr=0.1,0.01 --sweep seed=0..9 --array-running 4 -- ./train --lr {lr}
  muster submit --after-ok 12 --name report -- ./report
  generate | muster submit -)";

void print(const v1::SubmitResult& result, bool json) {
  if (!json) {
    std::cout << result.id() << std::endl;
    return;
  }
  Json out = json_object();
  out["id"] = result.id();
  out["name"] = result.name();
  out["duplicate"] = result.duplicate();
  std::cout << line_of(out) << std::endl;
}

}  // namespace

int submit_main(int argc, char** argv) {
  Arguments app("Submits jobs and prints their ids.", argv[0]);
  Common common;
  JobArguments arguments;
  int64_t patience_ms = kPatienceMs;
  add_server(app, &common);
  add_output(app, &common);
  add_job_arguments(app, &arguments);
  add_duration(app, "--patience", &patience_ms, "how long to try again while no server answers; default 1m")
      ->group("Submitting");
  app.footer(kExamples);
  if (auto code = parse(app, split_command(argc, argv, &arguments.overrides.command))) return *code;

  absl::StatusOr<std::vector<v1::JobSpec>> jobs = read_jobs(arguments);
  if (!jobs.ok()) return fail(jobs.status());
  std::vector<v1::SubmitItem> items(jobs->size());
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].set_key(arguments.key.empty() ? random_key() : arguments.key);
    *items[i].mutable_spec() = std::move((*jobs)[i]);
  }
  Client client(common.server);
  int code = kDone;
  size_t answered = 0;
  const bool many = items.size() > 1;
  const absl::Status status =
      submit(client, std::move(items), patience_ms,
             [&](size_t index, const absl::Status& refused, const v1::SubmitResult& result) {
               ++answered;
               if (refused.ok()) return print(result, common.json);
               std::cerr << "muster: " << (many ? absl::StrCat("job ", index + 1, " of these: ") : "")
                         << refused.message() << "\n";
               if (code == kDone) code = exit_code_of(refused);
             });
  if (!status.ok()) {
    if (answered > 0) std::cerr << "muster: " << answered << " jobs were submitted before this:\n";
    return fail(status);
  }
  return code;
}

}  // namespace muster::tools
