// `muster queue ls|set|rm`.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/cli/args.h"
#include "tools/cli/client.h"
#include "tools/cli/json.h"
#include "tools/cli/text.h"
#include "tools/spec/nearest.h"
#include "tools/spec/quantity.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

using Amounts = google::protobuf::RepeatedPtrField<v1::Amount>;

std::string amount_text(const v1::Amount& amount) {
  if (amount.resource() == "cpu") return spec::print_cpu(amount.value());
  if (amount.resource() == "memory") return spec::short_bytes(amount.value());
  return spec::print_gpu(amount.value());
}

std::string amounts_text(const Amounts& amounts) {
  return absl::StrJoin(amounts, " ", [](std::string* out, const v1::Amount& amount) {
    absl::StrAppend(out, amount.resource(), "=", amount_text(amount));
  });
}

Json amounts_json(const Amounts& amounts) {
  Json out = Json::object();
  for (const v1::Amount& amount : amounts) out[amount.resource()] = amount.value();
  return out;
}

int list(const Common& common) {
  Client client(common.server);
  v1::ListQueuesReply reply;
  if (absl::Status bad = client.call(&v1::Muster::Stub::ListQueues, v1::ListQueuesRequest(), &reply);
      !bad.ok())
    return fail(bad);
  Table table({"QUEUE", ">WEIGHT", ">PENDING", ">RUNNING", "USED", "QUOTA", "LIMIT"});
  for (const v1::QueueView& queue : reply.queues()) {
    const std::string weight = queue.declared() ? absl::StrCat(queue.spec().weight()) : "-";
    table.add({queue.spec().name(), weight, absl::StrCat(queue.pending()), absl::StrCat(queue.running()),
               amounts_text(queue.used()), amounts_text(queue.spec().quota()),
               amounts_text(queue.spec().limit())});
    if (!common.json) continue;
    Json out = json_object();
    out["name"] = queue.spec().name();
    out["declared"] = queue.declared();
    out["weight"] = queue.spec().weight();
    out["pending"] = queue.pending();
    out["running"] = queue.running();
    out["used"] = amounts_json(queue.used());
    out["quota"] = amounts_json(queue.spec().quota());
    out["limit"] = amounts_json(queue.spec().limit());
    std::cout << line_of(out) << "\n";
  }
  if (!common.json) table.print(std::cout);
  return kDone;
}

// "quota.gpu=8" into the list; an empty value takes the entry out.
absl::Status set_amount(const std::string& resource, const std::string& value, Amounts* amounts) {
  for (int i = 0; i < amounts->size(); ++i) {
    if (amounts->Get(i).resource() == resource) amounts->DeleteSubrange(i--, 1);
  }
  if (value.empty()) return absl::OkStatus();
  const absl::StatusOr<int64_t> number = spec::parser_of(resource)(value);
  if (!number.ok()) return number.status();
  v1::Amount* amount = amounts->Add();
  amount->set_resource(resource);
  amount->set_value(*number);
  return absl::OkStatus();
}

absl::Status apply_setting(const std::string& setting, v1::QueueSpec* queue) {
  const size_t equals = setting.find('=');
  const std::string key = setting.substr(0, equals);
  if (equals == std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat("'", setting, "' must be KEY=VALUE, as in quota.gpu=8"));
  const std::string value = setting.substr(equals + 1);
  absl::Status status;
  if (key == "weight") {
    const absl::StatusOr<int64_t> weight = spec::parse_integer(value, 1, 1'000'000);
    if (weight.ok()) queue->set_weight(static_cast<uint32_t>(*weight));
    status = weight.status();
  } else if (key.starts_with("quota.")) {
    status = set_amount(key.substr(6), value, queue->mutable_quota());
  } else if (key.starts_with("limit.")) {
    status = set_amount(key.substr(6), value, queue->mutable_limit());
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown key '", key, "'",
                     spec::did_you_mean(key, {"weight", "quota.gpu", "limit.gpu", "quota.cpu", "limit.cpu"}),
                     " There are weight, quota.RESOURCE and limit.RESOURCE (cpu, memory, gpu, gpu.MODEL)"));
  }
  return status.ok() ? status : absl::InvalidArgumentError(absl::StrCat(key, ": ", status.message()));
}

// What the queue has and `settings` don't name stays.
int set_queue(const Common& common, const std::string& name, const std::vector<std::string>& settings) {
  Client client(common.server);
  v1::ListQueuesReply queues;
  if (absl::Status bad = client.call(&v1::Muster::Stub::ListQueues, v1::ListQueuesRequest(), &queues);
      !bad.ok())
    return fail(bad);
  v1::OperateRequest request;
  v1::QueueSpec* queue = request.mutable_queue()->mutable_queue();
  for (const v1::QueueView& view : queues.queues()) {
    if (view.spec().name() == name) *queue = view.spec();
  }
  queue->set_name(name);
  for (const std::string& setting : settings) {
    if (absl::Status bad = apply_setting(setting, queue); !bad.ok()) return fail(bad);
  }
  v1::OperateReply reply;
  const absl::Status status = client.call(&v1::Muster::Stub::Operate, request, &reply);
  return status.ok() ? kDone : fail(status);
}

int remove_queue(const Common& common, const std::string& name) {
  Client client(common.server);
  v1::OperateRequest request;
  request.mutable_queue_removed()->set_name(name);
  v1::OperateReply reply;
  const absl::Status status = client.call(&v1::Muster::Stub::Operate, request, &reply);
  return status.ok() ? kDone : fail(status);
}

}  // namespace

int queue_main(int argc, char** argv) {
  Arguments app("Lists queues and sets their weight, quota and limit.", argv[0]);
  Common common;
  std::string name;
  std::vector<std::string> settings;
  app.require_subcommand(1);
  CLI::App* ls = app.add_subcommand("ls", "all queues");
  add_output(*ls, &common);
  CLI::App* set = app.add_subcommand("set", "declares a queue, or changes it");
  set->add_option("NAME", name)->type_name("")->required();
  set->add_option("KEY=VALUE", settings, "weight=2 quota.gpu=8 limit.memory=1Ti; an empty value takes it out")
      ->type_name("");
  CLI::App* rm = app.add_subcommand("rm", "takes its declaration back; no job is touched");
  rm->add_option("NAME", name)->type_name("")->required();
  for (CLI::App* verb : {ls, set, rm}) add_server(*verb, &common);
  app.footer("Example: muster queue set research/vision weight=2 quota.gpu=8 limit.gpu=16");
  if (auto code = parse(app, argc, argv)) return *code;
  if (*set) return set_queue(common, name, settings);
  if (*rm) return remove_queue(common, name);
  return list(common);
}

}  // namespace muster::tools
