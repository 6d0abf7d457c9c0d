// `muster why`: everything that a pending job waits for, with its number and its remedy.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "tools/cli/args.h"
#include "tools/cli/client.h"
#include "tools/cli/job_view.h"
#include "tools/cli/names.h"
#include "tools/cli/text.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

Json explained_json(const v1::ExplainReply& reply) {
  const v1::JobState& state = reply.job().state();
  Json out = json_object();
  out["id"] = state.id();
  if (state.element() > 0) out["element"] = state.element() - 1;
  out["name"] = state.name();
  out["state"] = phase_name(state.phase());
  out["never"] = reply.never();
  out["summary"] = reply.summary();
  Json blockers = Json::array();
  for (const v1::Blocker& blocker : reply.blockers()) {
    blockers.push_back({{"code", blocker.code()},
                        {"text", blocker.text()},
                        {"remedy", blocker.remedy()},
                        {"count", blocker.count()}});
  }
  out["blockers"] = std::move(blockers);
  return out;
}

void print_explained(const v1::ExplainReply& reply) {
  const v1::JobState& state = reply.job().state();
  std::cout << "job " << job_name(state.id(), state.element()) << "  " << state.name() << "  "
            << phase_name(state.phase()) << ": "
            << (reply.summary().empty() ? "waits for nothing" : reply.summary()) << "\n";
  for (const v1::Blocker& blocker : reply.blockers()) {
    std::cout << "  " << blocker.code() << ": " << one_line(blocker.text()) << "\n";
    if (!blocker.remedy().empty()) std::cout << "    → " << one_line(blocker.remedy()) << "\n";
  }
}

}  // namespace

int why_main(int argc, char** argv) {
  Arguments app("Says why a job has not started: every blocker, with its number and its remedy.", argv[0]);
  Common common;
  std::string name;
  add_server(app, &common);
  add_output(app, &common);
  app.add_option("ID", name, "12, 12[3] or the job's name")->type_name("")->required();
  if (auto code = parse(app, argc, argv)) return *code;
  const absl::StatusOr<v1::JobRef> job = parse_job_ref(name);
  if (!job.ok()) return fail(job.status());
  Client client(common.server);
  v1::ExplainRequest request;
  *request.mutable_job() = *job;
  v1::ExplainReply reply;
  if (absl::Status bad = client.call(&v1::Muster::Stub::Explain, request, &reply); !bad.ok())
    return fail(bad);
  if (common.json) {
    std::cout << line_of(explained_json(reply)) << "\n";
  } else {
    print_explained(reply);
  }
  return kDone;
}

}  // namespace muster::tools
