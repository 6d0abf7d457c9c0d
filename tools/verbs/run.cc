// `muster run`: submits one job, shows its output, and ends with its exit code.
#include <signal.h>

#include <iostream>
#include <thread>

#include "tools/cli/follow.h"
#include "tools/cli/job_arguments.h"
#include "tools/cli/job_view.h"
#include "tools/cli/submitter.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

constexpr const char* kExamples = R"(Ctrl-C detaches, and the job runs on; Ctrl-C twice cancels it.
Exit code: the job's own (of the member that decided); 100 when it failed without one, 103 cancelled, 104 can
never run (unless --wait-for-capacity), 101 detached.

Examples:
  muster run --cpu 2 -- make -j2
  muster run --replicas 4 --gpu 1 -- torchrun train.py)";
constexpr int64_t kSecondWithinMs = 3000;

// Takes SIGINT for the whole process: the first detaches, a second soon after cancels. Must be blocked in
// every thread before; ends the process by itself.
[[noreturn]] void watch_interrupts(const std::string& server, uint64_t id) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {
  }
  std::cerr << "\nmuster: detached; job " << id << " runs on: `muster logs -f " << id << "`, `muster wait "
            << id << "`. Ctrl-C again to cancel it." << std::endl;
  const timespec soon = {kSecondWithinMs / 1000, 0};
  if (sigtimedwait(&set, nullptr, &soon) != SIGINT) std::_Exit(kNotFinished);
  Client client(server);
  v1::ChangeRequest request;
  v1::ChangeReply reply;
  request.mutable_job()->set_id(id);
  request.set_cancel(true);
  const absl::Status status = client.call(&v1::Muster::Stub::Change, request, &reply);
  if (!status.ok()) std::_Exit(fail(status));
  std::cerr << "muster: job " << id << " is being cancelled" << std::endl;
  std::_Exit(kCancelled);
}

void block_interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int attach(Client& client, uint64_t id, bool prefix, const WaitOptions& options) {
  v1::JobRef job;
  job.set_id(id);
  v1::LogsRequest logs;
  logs.set_rank(-1);
  LogPrinter printer(std::cout, prefix, false);
  const absl::StatusOr<v1::JobView> view = follow_job(client, job, logs, options, &printer);
  if (view.status().code() == absl::StatusCode::kFailedPrecondition) {
    fail(view.status());
    return kNever;
  }
  if (!view.ok()) return fail(view.status());
  const v1::JobState& state = view->state();
  if (state.phase() != v1::SUCCEEDED)
    std::cerr << "muster: job " << id << " " << phase_name(state.phase()) << ": " << why_words(state, "")
              << "\n";
  return exit_code_of(*view);
}

}  // namespace

int run_main(int argc, char** argv) {
  Arguments app("Submits one job, follows its output and ends with its exit code.", argv[0]);
  Common common;
  JobArguments arguments;
  WaitOptions options;
  add_server(app, &common);
  add_job_arguments(app, &arguments);
  app.add_flag("--wait-for-capacity", options.for_capacity, "wait also when no node could ever hold it");
  add_duration(app, "--patience", &options.patience_ms,
               "how long to try again while no server answers; default 1m");
  app.footer(kExamples);
  if (auto code = parse(app, split_command(argc, argv, &arguments.overrides.command))) return *code;

  absl::StatusOr<std::vector<v1::JobSpec>> jobs = read_jobs(arguments);
  if (!jobs.ok()) return fail(jobs.status());
  if (jobs->size() != 1) return usage_error(app, "runs one job at a time");
  const v1::JobSpec& spec = jobs->front();
  uint64_t members = 0;
  for (const v1::Task& task : spec.tasks()) members += std::max(1U, task.replicas());
  if (spec.has_array()) return usage_error(app, "runs no array; `muster submit` it, then `muster wait`");
  std::vector<v1::SubmitItem> items(1);
  items[0].set_key(arguments.key.empty() ? random_key() : arguments.key);
  *items[0].mutable_spec() = spec;

  block_interrupts();
  Client client(common.server);
  uint64_t id = 0;
  int code = kDone;
  const auto answered = [&](size_t, const absl::Status& refused, const v1::SubmitResult& result) {
    id = result.id();
    if (!refused.ok()) code = fail(refused);
  };
  if (absl::Status status = submit(client, std::move(items), options.patience_ms, answered); !status.ok())
    return fail(status);
  if (code != kDone) return code;
  std::cerr << "muster: job " << id << std::endl;
  std::thread([server = common.server, id] { watch_interrupts(server, id); }).detach();
  return attach(client, id, members > 1, options);
}

}  // namespace muster::tools
