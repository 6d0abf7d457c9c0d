// `muster policy show|set`: the cell's own settings.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "tools/cli/args.h"
#include "tools/cli/client.h"
#include "tools/cli/json.h"
#include "tools/spec/quantity.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

int show_policy(const Common& common) {
  Client client(common.server);
  v1::ServerStatus status;
  if (absl::Status bad = client.call(&v1::Muster::Stub::GetStatus, v1::GetStatusRequest(), &status);
      !bad.ok())
    return fail(bad);
  if (common.json) {
    Json out = json_object();
    out["node_lost_ms"] = status.node_lost_ms();
    out["lease_ms"] = status.lease_ms();
    std::cout << line_of(out) << "\n";
  } else {
    std::cout << "node_lost=" << spec::print_duration(status.node_lost_ms())
              << "   a silent node is given up after so long\n"
              << "lease=" << spec::print_duration(status.lease_ms()) << "   set when the log was opened\n";
  }
  return kDone;
}

int set_policy(const Common& common, const std::vector<std::string>& settings) {
  Client client(common.server);
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(
          absl::InvalidArgumentError(absl::StrCat("'", setting, "' must be KEY=VALUE, as in node_lost=5m")));
    v1::OperateRequest request;
    request.mutable_policy()->set_key(setting.substr(0, equals));
    std::string value = setting.substr(equals + 1);
    // The log has times in milliseconds.
    if (request.policy().key() == "node_lost") {
      const absl::StatusOr<int64_t> ms = spec::parse_duration_ms(value);
      if (!ms.ok())
        return fail(absl::InvalidArgumentError(absl::StrCat("node_lost: ", ms.status().message())));
      value = absl::StrCat(*ms);
    }
    request.mutable_policy()->set_value(value);
    v1::OperateReply reply;
    const absl::Status status = client.call(&v1::Muster::Stub::Operate, request, &reply);
    if (!status.ok()) return fail(status);
  }
  return kDone;
}

}  // namespace

int policy_main(int argc, char** argv) {
  Arguments app("Shows and sets the cell's policy.", argv[0]);
  Common common;
  std::vector<std::string> settings;
  app.require_subcommand(1);
  CLI::App* show = app.add_subcommand("show", "all of it");
  add_output(*show, &common);
  CLI::App* set = app.add_subcommand("set", "changes it");
  set->add_option("KEY=VALUE", settings, "node_lost=5m")->type_name("")->required();
  for (CLI::App* verb : {show, set}) add_server(*verb, &common);
  if (auto code = parse(app, argc, argv)) return *code;
  return *set ? set_policy(common, settings) : show_policy(common);
}

}  // namespace muster::tools
