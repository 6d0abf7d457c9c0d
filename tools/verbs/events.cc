// `muster events`: what the log says of one job.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/records.h"
#include "tools/cli/args.h"
#include "tools/cli/follow.h"
#include "tools/cli/names.h"
#include "tools/cli/record_text.h"
#include "tools/cli/text.h"
#include "tools/verbs.h"

namespace muster::tools {

int events_main(int argc, char** argv) {
  Arguments app("Prints the records of one job, in the order of the log.", argv[0]);
  Common common;
  std::string name;
  bool follow = false;
  add_server(app, &common);
  add_output(app, &common);
  app.add_option("ID", name, "12, 12[3] or the job's name")->type_name("")->required();
  app.add_flag("-f,--follow", follow, "until the job has ended");
  app.footer(
      "With -o json each line is {schema, position, type, key, record}, as `muster log export` prints it.");
  if (auto code = parse(app, argc, argv)) return *code;
  const absl::StatusOr<v1::JobRef> job = parse_job_ref(name);
  if (!job.ok()) return fail(job.status());
  Client client(common.server);
  v1::WatchRequest request;
  *request.mutable_job() = *job;
  request.set_follow(follow);
  const absl::Status status = watch(client, request, follow ? kPatienceMs : 0, [&](const v1::Event& event) {
    if (common.json) {
      std::cout << record_json(event.position(), event.key(), event.value()) << std::endl;
      return absl::OkStatus();
    }
    const RecordText text = record_text(event.value());
    std::cout << absl::StrFormat("%8d  %s  %-16s  %s", event.position(), when_text(text.wall_ms, wall_ms()),
                                 text.type, one_line(text.words))
              << std::endl;
    return absl::OkStatus();
  });
  return status.ok() ? kDone : fail(status);
}

}  // namespace muster::tools
