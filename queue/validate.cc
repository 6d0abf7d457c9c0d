#include "queue/validate.h"

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "queue/validate_text.h"

namespace muster::queue {
namespace {

constexpr int64_t kDurationMaxMs = int64_t{10} * 366 * 86'400'000;
constexpr int64_t kBytesMax = int64_t{1} << 50;
constexpr int64_t kCpuMilliMax = 10'000'000;
constexpr int64_t kGpuMilliMax = 1'024'000;
constexpr std::string_view kNameRule =
    "must be 1 to 128 letters, digits, '.', '_' or '-', and not only digits";

// Stops the function at the first error.
#define MUSTER_CHECK_FIELD(expression) \
  if (absl::Status status_ = (expression); !status_.ok()) return status_

absl::Status in_range(const FieldPath& at, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return field_error(at, absl::StrCat(value), absl::StrCat("must be ", least, " to ", most));
}

absl::Status count_at_most(const FieldPath& at, int64_t count, int64_t most, std::string_view what) {
  if (count <= most) return absl::OkStatus();
  return field_error(at, absl::StrCat(count, " ", absl::string_view(what.data(), what.size())),
                     absl::StrCat("must be at most ", most));
}

std::string name_from_command(const v1::Task& task) {
  if (task.command().empty()) return "script";
  std::string_view word = task.command(0);
  if (const size_t slash = word.find_last_of('/'); slash != std::string_view::npos)
    word.remove_prefix(slash + 1);
  std::string out;
  for (char c : word.substr(0, 100)) out += consists_of(std::string_view(&c, 1), "._-", 1) ? c : '-';
  if (out.empty() || only_digits(out)) out = absl::StrCat("job-", out);
  return out;
}

void fill_task(v1::Task* task, bool only) {
  if (only && task->name().empty()) task->set_name("main");
  if (task->replicas() == 0) task->set_replicas(1);
  if (task->resources().cpu_milli() == 0) task->mutable_resources()->set_cpu_milli(1000);
}

void fill(v1::JobSpec* spec) {
  for (v1::Task& task : *spec->mutable_tasks()) fill_task(&task, spec->tasks_size() == 1);
  if (spec->name().empty() && spec->tasks_size() > 0) spec->set_name(name_from_command(spec->tasks(0)));
  if (spec->queue().empty()) spec->set_queue("default");
  if (spec->user().empty()) spec->set_user(std::string(kAnonymous));
  if (!spec->has_grace_ms()) spec->set_grace_ms(30'000);
  if (spec->signal().empty()) spec->set_signal("TERM");
  v1::Retries* retries = spec->mutable_retries();
  if (!retries->has_own()) retries->set_own(0);
  if (!retries->has_infrastructure()) retries->set_infrastructure(10);
  if (!retries->has_start()) retries->set_start(5);
  if (!spec->has_start_limit_ms()) spec->set_start_limit_ms(600'000);
  if (spec->success().empty()) spec->set_success("all");
  if (spec->has_array() && spec->array().count() == 0 && spec->array().sweep_size() > 0) {
    uint64_t count = 1;
    for (const v1::SweepValues& sweep : spec->array().sweep()) {
      count *= static_cast<uint64_t>(sweep.values_size());
      if (count > kArrayElementsMax) break;
    }
    spec->mutable_array()->set_count(static_cast<uint32_t>(count));
  }
}

absl::Status check_resources(const v1::Resources& resources, const FieldPath& at) {
  MUSTER_CHECK_FIELD(in_range({&at, "cpu_milli"}, resources.cpu_milli(), 1, kCpuMilliMax));
  MUSTER_CHECK_FIELD(in_range({&at, "memory_bytes"}, resources.memory_bytes(), 0, kBytesMax));
  MUSTER_CHECK_FIELD(in_range({&at, "shm_bytes"}, resources.shm_bytes(), 0, kBytesMax));
  MUSTER_CHECK_FIELD(in_range({&at, "gpu_milli"}, resources.gpu_milli(), 0, kGpuMilliMax));
  if (resources.gpu_milli() % 1000 != 0)
    return field_error({&at, "gpu_milli"}, absl::StrCat(resources.gpu_milli()),
                       "must be a multiple of 1000; shares of a device are not served yet");
  return absl::OkStatus();
}

absl::Status check_env(const v1::Task& task, const FieldPath& at) {
  MUSTER_CHECK_FIELD(count_at_most(at, task.env_size(), 1000, "entries"));
  for (const auto& [name, value] : task.env()) {
    if (!valid_variable(name))
      return field_error(at, quoted(name),
                         "a variable's name is 1 to 128 letters, digits or '_', no digit first");
    if (value.size() > 32'768 || value.find('\0') != std::string::npos)
      return field_error(at, absl::StrCat("the value of ", name, " (", value.size(), " bytes)"),
                         "must be at most 32768 bytes without NUL");
  }
  return absl::OkStatus();
}

absl::Status check_rules(const google::protobuf::RepeatedPtrField<v1::LabelRule>& rules,
                         const FieldPath& at) {
  MUSTER_CHECK_FIELD(count_at_most(at, rules.size(), 64, "rules"));
  for (int i = 0; i < rules.size(); ++i) {
    const FieldPath rule{at.in, at.field, i};
    if (!valid_label(rules[i].label()))
      return field_error({&rule, "label"}, quoted(rules[i].label()),
                         "must be 1 to 128 letters, digits, '.', '_', '-' or '/'");
    MUSTER_CHECK_FIELD(in_range({&rule, "values"}, rules[i].values_size(), 1, 64));
    for (const std::string& value : rules[i].values()) {
      if (value.size() > 256)
        return field_error({&rule, "values"}, quoted(value), "must be at most 256 bytes");
    }
  }
  return absl::OkStatus();
}

absl::Status check_command(const v1::Task& task, const FieldPath& at) {
  if (task.command().empty() == task.script().empty())
    return field_error({&at, "command"}, task.script().empty() ? "empty" : "a script beside it",
                       "must be either command or script");
  MUSTER_CHECK_FIELD(count_at_most({&at, "command"}, task.command_size(), 4096, "words"));
  for (int i = 0; i < task.command_size(); ++i) {
    if ((i == 0 && task.command(0).empty()) || task.command(i).find('\0') != std::string::npos)
      return field_error({&at, "command", i}, quoted(task.command(i)),
                         "must be without NUL, and the first word not empty");
  }
  return absl::OkStatus();
}

absl::Status check_names(const v1::Task& task, const FieldPath& at) {
  MUSTER_CHECK_FIELD(count_at_most({&at, "gpu_model"}, task.gpu_model_size(), 16, "models"));
  for (const std::string& model : task.gpu_model()) {
    if (!consists_of(model, "._- ", 128))
      return field_error({&at, "gpu_model"}, quoted(model),
                         "must be 1 to 128 letters, digits, ' ', '.', '_' or '-'");
  }
  MUSTER_CHECK_FIELD(count_at_most({&at, "ports"}, task.ports_size(), 16, "ports"));
  std::set<std::string> seen;
  for (const std::string& port : task.ports()) {
    if (!consists_of(port, "_-", 32) || !seen.insert(port).second)
      return field_error({&at, "ports"}, quoted(port),
                         "must be 1 to 32 letters, digits, '_' or '-', each once");
  }
  return absl::OkStatus();
}

absl::Status check_task(const v1::Task& task, const FieldPath& at) {
  if (!valid_name(task.name()) || task.name() == "all")
    return field_error({&at, "name"}, quoted(task.name()),
                       absl::StrCat(std::string(kNameRule), ", nor 'all'"));
  MUSTER_CHECK_FIELD(check_resources(task.resources(), {&at, "resources"}));
  MUSTER_CHECK_FIELD(check_command(task, at));
  MUSTER_CHECK_FIELD(check_env(task, {&at, "env"}));
  MUSTER_CHECK_FIELD(check_names(task, at));
  MUSTER_CHECK_FIELD(check_rules(task.require(), {&at, "require"}));
  MUSTER_CHECK_FIELD(check_rules(task.exclude(), {&at, "exclude"}));
  MUSTER_CHECK_FIELD(check_rules(task.prefer(), {&at, "prefer"}));
  MUSTER_CHECK_FIELD(in_range({&at, "per_node"}, task.per_node(), 0, kGangMembersMax));
  if (!v1::OnFailure_IsValid(task.on_failure()))
    return field_error({&at, "on_failure"}, absl::StrCat(task.on_failure()),
                       "must be stop, ignore or restart");
  return absl::OkStatus();
}

absl::Status check_tasks(const v1::JobSpec& spec, const FieldPath& at) {
  MUSTER_CHECK_FIELD(in_range({&at, "tasks"}, spec.tasks_size(), 1, kTasksMax));
  std::set<std::string> names;
  uint64_t members = 0;
  for (int i = 0; i < spec.tasks_size(); ++i) {
    const v1::Task& task = spec.tasks(i);
    const FieldPath here{&at, "tasks", i};
    members += task.replicas();
    if (members > kGangMembersMax)
      return field_error({&here, "replicas"}, absl::StrCat(task.replicas()),
                         absl::StrCat("must be 1 to ", kGangMembersMax, " in all tasks together"));
    MUSTER_CHECK_FIELD(check_task(task, here));
    if (!names.insert(task.name()).second)
      return field_error({&here, "name"}, quoted(task.name()), "each task needs a name of its own");
  }
  if (spec.success() != "all" && !names.contains(spec.success()))
    return field_error({&at, "success"}, quoted(spec.success()), "must be all, or the name of a task");
  return absl::OkStatus();
}

absl::Status check_times(const v1::JobSpec& spec, const FieldPath& at) {
  MUSTER_CHECK_FIELD(in_range({&at, "time_limit_ms"}, spec.time_limit_ms(), 0, kDurationMaxMs));
  MUSTER_CHECK_FIELD(in_range({&at, "expected_ms"}, spec.expected_ms(), 0, kDurationMaxMs));
  MUSTER_CHECK_FIELD(in_range({&at, "grace_ms"}, spec.grace_ms(), 0, 86'400'000));
  MUSTER_CHECK_FIELD(in_range({&at, "start_limit_ms"}, spec.start_limit_ms(), 100, 7 * int64_t{86'400'000}));
  MUSTER_CHECK_FIELD(in_range({&at, "on_disconnect.stop_after_ms"}, spec.on_disconnect().stop_after_ms(), 0,
                              kDurationMaxMs));
  const FieldPath retries{&at, "retries"};
  MUSTER_CHECK_FIELD(in_range({&retries, "own"}, spec.retries().own(), 0, 1'000'000));
  MUSTER_CHECK_FIELD(in_range({&retries, "infrastructure"}, spec.retries().infrastructure(), 0, 1'000'000));
  return in_range({&retries, "start"}, spec.retries().start(), 0, 1'000'000);
}

absl::Status check_after(const google::protobuf::RepeatedPtrField<std::string>& references,
                         const FieldPath& at) {
  MUSTER_CHECK_FIELD(count_at_most(at, references.size(), 1000, "references"));
  for (int i = 0; i < references.size(); ++i) {
    uint64_t id = 0;
    if (!valid_name(references[i]) && !(absl::SimpleAtoi(references[i], &id) && id > 0))
      return field_error({at.in, at.field, i}, quoted(references[i]), "must be a job's id or name");
  }
  return absl::OkStatus();
}

absl::Status check_array(const v1::Array& array, const FieldPath& at) {
  MUSTER_CHECK_FIELD(in_range({&at, "count"}, array.count(), 1, kArrayElementsMax));
  MUSTER_CHECK_FIELD(in_range({&at, "running"}, array.running(), 0, kArrayElementsMax));
  MUSTER_CHECK_FIELD(count_at_most({&at, "sweep"}, array.sweep_size(), 16, "parameters"));
  if (array.sweep().empty()) return absl::OkStatus();
  uint64_t product = 1;
  for (int i = 0; i < array.sweep_size(); ++i) {
    const FieldPath here{&at, "sweep", i};
    const v1::SweepValues& sweep = array.sweep(i);
    if (!valid_variable(sweep.parameter()))
      return field_error({&here, "parameter"}, quoted(sweep.parameter()),
                         "must be 1 to 128 letters, digits or '_', no digit first");
    MUSTER_CHECK_FIELD(in_range({&here, "values"}, sweep.values_size(), 1, kArrayElementsMax));
    for (const std::string& value : sweep.values()) {
      if (value.size() > 4096 || value.find('\0') != std::string::npos)
        return field_error({&here, "values"}, quoted(value), "must be at most 4096 bytes without NUL");
    }
    product *= static_cast<uint64_t>(sweep.values_size());
    if (product > kArrayElementsMax)
      return field_error({&at, "sweep"}, absl::StrCat(product, " or more combinations"),
                         absl::StrCat("must be at most ", kArrayElementsMax));
  }
  if (product != array.count())
    return field_error({&at, "count"}, absl::StrCat(array.count()),
                       absl::StrCat("must be the number of the sweep's combinations, ", product));
  return absl::OkStatus();
}

absl::Status check_labels(const v1::JobSpec& spec, const FieldPath& at) {
  MUSTER_CHECK_FIELD(count_at_most(at, spec.labels_size(), 64, "labels"));
  for (const auto& [name, value] : spec.labels()) {
    if (!valid_label(name))
      return field_error(at, quoted(name),
                         "a label's name is 1 to 128 letters, digits, '.', '_', '-' or '/'");
    if (value.size() > 256)
      return field_error(at, absl::StrCat("the value of ", name, " (", value.size(), " bytes)"),
                         "must be at most 256 bytes");
  }
  return absl::OkStatus();
}

absl::Status check_identity(const v1::JobSpec& spec, const FieldPath& at) {
  if (!valid_name(spec.name())) return field_error({&at, "name"}, quoted(spec.name()), kNameRule);
  MUSTER_CHECK_FIELD(validate_queue_name(spec.queue(), {&at, "queue"}));
  if (!consists_of(spec.user(), "._@-", 128))
    return field_error({&at, "user"}, quoted(spec.user()),
                       "must be 1 to 128 letters, digits, '.', '_', '@' or '-'");
  MUSTER_CHECK_FIELD(in_range({&at, "priority"}, spec.priority(), -1'000'000, 1'000'000));
  if (!known_signal(spec.signal()))
    return field_error({&at, "signal"}, quoted(spec.signal()),
                       "must be a signal's name, as in TERM, INT, USR1");
  if (spec.has_pack() && !valid_label(spec.pack().label()))
    return field_error({&at, "pack.label"}, quoted(spec.pack().label()), "must be a node label's name");
  if (!spec.workdir().empty() && (spec.workdir().front() != '/' || spec.workdir().size() > 4096 ||
                                  spec.workdir().find('\0') != std::string::npos))
    return field_error({&at, "workdir"}, quoted(spec.workdir()),
                       "must be an absolute path of at most 4096 bytes");
  return absl::OkStatus();
}

}  // namespace

absl::Status validate_and_fill(v1::JobSpec* spec, const FieldPath& at) {
  fill(spec);
  MUSTER_CHECK_FIELD(check_tasks(*spec, at));
  MUSTER_CHECK_FIELD(check_identity(*spec, at));
  MUSTER_CHECK_FIELD(check_times(*spec, at));
  const FieldPath after{&at, "after"};
  MUSTER_CHECK_FIELD(check_after(spec->after().ok(), {&after, "ok"}));
  MUSTER_CHECK_FIELD(check_after(spec->after().any(), {&after, "any"}));
  if (spec->has_array()) MUSTER_CHECK_FIELD(check_array(spec->array(), {&at, "array"}));
  MUSTER_CHECK_FIELD(check_labels(*spec, {&at, "labels"}));
  if (const size_t bytes = spec->ByteSizeLong(); bytes > kSpecBytesMax)
    return field_error(at, absl::StrCat(bytes, " bytes"), absl::StrCat("must be at most ", kSpecBytesMax));
  return absl::OkStatus();
}

absl::Status validate_key(std::string_view key, const FieldPath& at) {
  if (!key.empty() && key.size() <= kKeyBytesMax && key.find('\0') == std::string_view::npos)
    return absl::OkStatus();
  return field_error(
      at, key.empty() ? "empty" : quoted(key),
      absl::StrCat("must be 1 to ", kKeyBytesMax, " bytes without NUL, made before the first send"));
}

absl::Status validate_queue_name(std::string_view name, const FieldPath& at) {
  size_t begin = 0, levels = 0;
  bool good = name.size() <= 256;
  while (good && begin <= name.size()) {
    const size_t end = std::min(name.find('/', begin), name.size());
    good = consists_of(name.substr(begin, end - begin), "._-", 64) && ++levels <= 8;
    begin = end + 1;
  }
  if (good) return absl::OkStatus();
  return field_error(
      at, quoted(name),
      "must be 1 to 8 levels of 1 to 64 letters, digits, '.', '_' or '-', as in research/vision");
}

absl::Status validate_node_name(std::string_view name, const FieldPath& at) {
  if (consists_of(name, "._-", 128)) return absl::OkStatus();
  return field_error(at, quoted(name), "must be 1 to 128 letters, digits, '.', '_' or '-'");
}

}  // namespace muster::queue
