// `muster status`: the server, its cell and its log.
#include <iostream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/args.h"
#include "tools/cli/client.h"
#include "tools/cli/json.h"
#include "tools/spec/quantity.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

Json status_json(const v1::ServerStatus& status) {
  Json out = json_object();
  out["cell"] = status.cell();
  out["version"] = status.version();
  out["leader"] = status.leader();
  out["caught_up"] = status.caught_up();
  out["position"] = status.position();
  out["chain"] = absl::BytesToHexString(status.chain());
  out["digest"] = absl::BytesToHexString(status.digest());
  out["term"] = status.term();
  out["refused"] = status.refused();
  out["undecodable"] = status.undecodable();
  out["live_jobs"] = status.live_jobs();
  out["ended_jobs"] = status.ended_jobs();
  out["nodes"] = status.nodes();
  out["cell_ms"] = status.cell_ms();
  out["lease_ms"] = status.lease_ms();
  out["trouble"] = status.trouble();
  return out;
}

void print_status(const Client& client, const v1::ServerStatus& status) {
  std::cout << "cell " << status.cell() << " at " << client.address() << ", version " << status.version()
            << "\n"
            << "  server      " << (status.leader() ? "leads" : "follows") << " term " << status.term()
            << (status.caught_up() ? ", caught up" : ", still reading its log") << "\n"
            << "  log         position " << status.position() << ", chain "
            << absl::BytesToHexString(status.chain()) << "\n"
            << "  digest      " << absl::BytesToHexString(status.digest()) << "\n"
            << "  jobs        " << status.live_jobs() << " live, " << status.ended_jobs() << " ended\n"
            << "  nodes       " << status.nodes() << "\n"
            << "  records     " << status.refused() << " refused, " << status.undecodable()
            << " undecodable\n"
            << "  cell time   " << spec::print_duration(status.cell_ms()) << ", lease "
            << spec::print_duration(status.lease_ms()) << "\n";
  if (!status.trouble().empty()) std::cout << "  TROUBLE     " << status.trouble() << "\n";
}

}  // namespace

int status_main(int argc, char** argv) {
  Arguments app("Says how the server stands: its log, its state, its troubles.", argv[0]);
  Common common;
  add_server(app, &common);
  add_output(app, &common);
  app.footer("Exit code: 0 all is well, 1 the server tells a trouble or has not caught up, 106 no server.");
  if (auto code = parse(app, argc, argv)) return *code;
  Client client(common.server);
  v1::GetStatusRequest request;
  request.set_digest(true);
  v1::ServerStatus status;
  if (absl::Status bad = client.call(&v1::Muster::Stub::GetStatus, request, &status); !bad.ok())
    return fail(bad);
  if (common.json) {
    std::cout << line_of(status_json(status)) << "\n";
  } else {
    print_status(client, status);
  }
  return status.trouble().empty() && status.caught_up() ? kDone : kFailed;
}

}  // namespace muster::tools
