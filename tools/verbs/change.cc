// The verbs that change jobs: cancel, hold, release, requeue, retry, update.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "tools/cli/args.h"
#include "tools/cli/follow.h"
#include "tools/cli/json.h"
#include "tools/cli/names.h"
#include "tools/cli/submitter.h"
#include "tools/spec/quantity.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

// Asked again while no server answers: to cancel, hold, release or update twice is to do it once, and a retry
// has its key.
absl::Status change(Client& client, const v1::ChangeRequest& request, int64_t patience_ms,
                    v1::ChangeReply* reply) {
  Patience patience(patience_ms);
  while (true) {
    const absl::Status status = client.call(&v1::Muster::Stub::Change, request, reply);
    if (status.ok() || !worth_retrying(status) || !patience.wait(status)) return status;
  }
}

// The same change of each of the jobs named; the exit code is the first failure's.
int change_each(int argc, char** argv, const char* about, const v1::ChangeRequest& what) {
  Arguments app(about, argv[0]);
  Common common;
  std::vector<std::string> names;
  int64_t patience_ms = 0;
  add_server(app, &common);
  app.add_option("ID", names, "12, 12[3] or the job's name")->type_name("")->required();
  add_duration(app, "--patience", &patience_ms,
               "how long to try again while no server answers; default: not at all");
  if (auto code = parse(app, argc, argv)) return *code;
  Client client(common.server);
  int first = kDone;
  for (const std::string& name : names) {
    const absl::StatusOr<v1::JobRef> job = parse_job_ref(name);
    v1::ChangeRequest request = what;
    v1::ChangeReply reply;
    if (job.ok()) *request.mutable_job() = *job;
    const absl::Status status = job.ok() ? change(client, request, patience_ms, &reply) : job.status();
    if (status.ok()) continue;
    const int code = fail(status);
    if (first == kDone) first = code;
  }
  return first;
}

// Times are sent in milliseconds, so that "1h30m" is understood; the rest as it was typed.
absl::Status add_setting(const std::string& setting, v1::UpdateRequest* update) {
  const size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0)
    return absl::InvalidArgumentError(absl::StrCat("'", setting, "' must be KEY=VALUE, as in priority=5"));
  const std::string key = setting.substr(0, equals);
  std::string value = setting.substr(equals + 1);
  if (key == "time_limit" || key == "expected") {
    const absl::StatusOr<int64_t> ms = spec::parse_duration_ms(value);
    if (!ms.ok()) return absl::InvalidArgumentError(absl::StrCat(key, ": ", ms.status().message()));
    value = absl::StrCat(*ms, "ms");
  }
  (*update->mutable_set())[key] = value;
  return absl::OkStatus();
}

}  // namespace

int cancel_main(int argc, char** argv) {
  v1::ChangeRequest request;
  request.set_cancel(true);
  return change_each(argc, argv, "Cancels jobs: signal, grace, kill; a whole array with all its elements.",
                     request);
}

int hold_main(int argc, char** argv) {
  v1::ChangeRequest request;
  request.set_hold(true);
  return change_each(argc, argv, "Holds pending jobs back from starting.", request);
}

int release_main(int argc, char** argv) {
  v1::ChangeRequest request;
  request.set_release(true);
  return change_each(argc, argv, "Lets held jobs start.", request);
}

int requeue_main(int argc, char** argv) {
  v1::ChangeRequest request;
  request.set_requeue(true);
  return change_each(argc, argv, "Stops running jobs and puts them back into their place in line.", request);
}

int retry_main(int argc, char** argv) {
  Arguments app("Makes a new job like one that has ended; prints its id.", argv[0]);
  Common common;
  std::string name, key;
  int64_t patience_ms = kPatienceMs;
  add_server(app, &common);
  add_output(app, &common);
  app.add_option("ID", name, "12, or the job's name")->type_name("")->required();
  app.add_option("--key", key, "the idempotency key: the same key again is the same new job")
      ->type_name("KEY");
  add_duration(app, "--patience", &patience_ms, "how long to try again while no server answers; default 1m");
  if (auto code = parse(app, argc, argv)) return *code;
  const absl::StatusOr<v1::JobRef> job = parse_job_ref(name);
  if (!job.ok()) return fail(job.status());
  Client client(common.server);
  v1::ChangeRequest request;
  *request.mutable_job() = *job;
  request.mutable_retry()->set_key(key.empty() ? random_key() : key);
  v1::ChangeReply reply;
  if (absl::Status bad = change(client, request, patience_ms, &reply); !bad.ok()) return fail(bad);
  if (!common.json) {
    std::cout << reply.id() << "\n";
    return kDone;
  }
  Json out = json_object();
  out["id"] = reply.id();
  out["name"] = reply.name();
  out["duplicate"] = reply.duplicate();
  std::cout << line_of(out) << "\n";
  return kDone;
}

int update_main(int argc, char** argv) {
  Arguments app("Changes a job that has not ended.", argv[0]);
  Common common;
  std::string name;
  std::vector<std::string> settings;
  add_server(app, &common);
  app.add_option("ID", name, "12, or the job's name")->type_name("")->required();
  app.add_option("KEY=VALUE", settings, "priority, time_limit, expected, queue, array.running")
      ->type_name("")
      ->required();
  app.footer("Example: muster update 12 priority=5 time_limit=2h");
  if (auto code = parse(app, argc, argv)) return *code;
  const absl::StatusOr<v1::JobRef> job = parse_job_ref(name);
  if (!job.ok()) return fail(job.status());
  v1::ChangeRequest request;
  *request.mutable_job() = *job;
  for (const std::string& setting : settings) {
    if (absl::Status bad = add_setting(setting, request.mutable_update()); !bad.ok()) return fail(bad);
  }
  Client client(common.server);
  v1::ChangeReply reply;
  const absl::Status status = change(client, request, 0, &reply);
  return status.ok() ? kDone : fail(status);
}

}  // namespace muster::tools
