// `muster wait`: until jobs have ended; the exit code is the first one's that did not succeed.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "tools/cli/args.h"
#include "tools/cli/follow.h"
#include "tools/cli/job_view.h"
#include "tools/cli/names.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

constexpr const char* kFooter =
    R"(Exit code: 0 all succeeded; else of the first that did not: its own code, 100 failed without one, 101 not ended
within --timeout, 102 not found, 103 cancelled, 104 can never run as the cell is (the server has said so for
3 s; --wait-for-capacity waits on), 106 no server answered for --patience.)";

int wait_for_one(Client& client, const std::string& text, const v1::JobRef& job, const WaitOptions& options) {
  const absl::StatusOr<v1::JobView> view = wait_for_job(client, job, options);
  if (view.status().code() == absl::StatusCode::kFailedPrecondition) {
    fail(view.status());
    return kNever;
  }
  if (!view.ok()) return fail(view.status());
  const v1::JobState& state = view->state();
  const std::string id = job_name(state.id(), state.element());
  if (!terminal(state.phase())) {
    std::cerr << "muster: job " << id << " has not ended: " << phase_name(state.phase()) << "\n";
  } else if (state.phase() != v1::SUCCEEDED) {
    std::cerr << "muster: job " << id << " " << phase_name(state.phase()) << ": " << why_words(state, "")
              << "\n";
  }
  return exit_code_of(*view);
}

}  // namespace

int wait_main(int argc, char** argv) {
  Arguments app("Waits until jobs have ended and passes their exit code on.", argv[0]);
  Common common;
  std::vector<std::string> names;
  WaitOptions options;
  add_server(app, &common);
  app.add_option("ID", names, "12, 12[3] or the job's name")->type_name("")->required();
  add_duration(app, "--timeout", &options.timeout_ms, "at most so long, for all together; then 101");
  app.add_flag("--wait-for-capacity", options.for_capacity, "wait also when no node could ever hold it");
  add_duration(app, "--patience", &options.patience_ms, "how long no server may answer; default 1m");
  app.footer(kFooter);
  if (auto code = parse(app, argc, argv)) return *code;
  std::vector<v1::JobRef> jobs;
  for (const std::string& name : names) {
    const absl::StatusOr<v1::JobRef> job = parse_job_ref(name);
    if (!job.ok()) return fail(job.status());
    jobs.push_back(*job);
  }
  Client client(common.server);
  const int64_t began_ms = monotonic_ms();
  const int64_t timeout_ms = options.timeout_ms;
  int first = kDone;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (timeout_ms >= 0) options.timeout_ms = std::max<int64_t>(0, timeout_ms - (monotonic_ms() - began_ms));
    const int code = wait_for_one(client, names[i], jobs[i], options);
    if (first == kDone) first = code;
  }
  return first;
}

}  // namespace muster::tools
