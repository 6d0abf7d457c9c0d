// The keys of a member: top-level in a job without `tasks:`, else in each task.
#include "absl/strings/str_cat.h"
#include "tools/spec/quantity.h"
#include "tools/spec/readers.h"

namespace muster::spec {
namespace {

constexpr int64_t kReplicasMax = 8192;

absl::Status read_replicas(const Value& value, v1::JobSpec*, v1::Task* task) {
  if (value.is_map()) return value.planned("replicas: {min, max}");
  int64_t replicas = 0;
  if (absl::Status bad = value.integer(1, kReplicasMax, &replicas); !bad.ok()) return bad;
  task->set_replicas(static_cast<uint32_t>(replicas));
  return absl::OkStatus();
}

absl::Status read_gpu(const Value& value, v1::Resources* out) {
  int64_t milli = 0;
  if (absl::Status bad = read_quantity(value, parse_gpu_milli, &milli); !bad.ok()) return bad;
  if (milli > 0 && milli < 1000) return value.planned("gpu below 1");
  if (milli % 1000 != 0) return value.error("'gpu' must be a whole number of devices");
  out->set_gpu_milli(milli);
  return absl::OkStatus();
}

absl::Status read_resources(const Value& value, v1::JobSpec*, v1::Task* task) {
  v1::Resources* out = task->mutable_resources();
  out->Clear();
  return value.each("as in {cpu: 4, memory: 16Gi, gpu: 1}", [&](const Value& entry) -> absl::Status {
    const std::string key = entry.key();
    int64_t number = 0;
    absl::Status status;
    if (key == "gpu") return read_gpu(entry, out);
    if (key == "gpu_memory") return entry.planned(key);
    if (key == "cpu") {
      status = read_quantity(entry, parse_cpu_milli, &number);
      out->set_cpu_milli(number);
    } else if (key == "memory") {
      status = read_quantity(entry, parse_bytes, &number);
      out->set_memory_bytes(number);
    } else if (key == "shm") {
      status = read_quantity(entry, parse_bytes, &number);
      out->set_shm_bytes(number);
    } else {
      status = entry.unknown_key({"cpu", "memory", "gpu", "shm", "gpu_memory"});
    }
    return status;
  });
}

absl::Status read_command(const Value& value, v1::JobSpec*, v1::Task* task) {
  if (!value.is_list())
    return value.error(
        "'command' must be a list of words, as in [python, train.py]; a line of shell is 'script'");
  std::vector<std::string> words;
  if (absl::Status bad = value.texts(&words); !bad.ok()) return bad;
  if (words.empty()) return value.error("'command' must have at least one word");
  task->mutable_command()->Assign(words.begin(), words.end());
  return absl::OkStatus();
}

absl::Status read_script(const Value& value, v1::JobSpec*, v1::Task* task) {
  if (absl::Status bad = value.text(task->mutable_script()); !bad.ok()) return bad;
  if (task->script().empty()) return value.error("'script' must not be empty");
  return absl::OkStatus();
}

absl::Status read_env(const Value& value, v1::JobSpec*, v1::Task* task) {
  task->clear_env();
  return value.each("as in {LR: \"0.1\"}",
                    [&](const Value& entry) { return entry.text(&(*task->mutable_env())[entry.key()]); });
}

absl::Status read_gpu_model(const Value& value, v1::JobSpec*, v1::Task* task) {
  std::vector<std::string> models;
  if (absl::Status bad = value.texts(&models); !bad.ok()) return bad;
  task->mutable_gpu_model()->Assign(models.begin(), models.end());
  return absl::OkStatus();
}

absl::Status read_rules(const Value& value, google::protobuf::RepeatedPtrField<v1::LabelRule>* out) {
  out->Clear();
  return value.each("as in {zone: [us-east-1a]}", [&](const Value& entry) {
    std::vector<std::string> values;
    if (absl::Status bad = entry.texts(&values); !bad.ok()) return bad;
    v1::LabelRule* rule = out->Add();
    rule->set_label(entry.key());
    rule->mutable_values()->Assign(values.begin(), values.end());
    return absl::OkStatus();
  });
}
absl::Status read_require(const Value& value, v1::JobSpec*, v1::Task* task) {
  return read_rules(value, task->mutable_require());
}
absl::Status read_not(const Value& value, v1::JobSpec*, v1::Task* task) {
  return read_rules(value, task->mutable_exclude());
}
absl::Status read_prefer(const Value& value, v1::JobSpec*, v1::Task* task) {
  return read_rules(value, task->mutable_prefer());
}

absl::Status read_ports(const Value& value, v1::JobSpec*, v1::Task* task) {
  task->clear_ports();
  return value.each("as in {tensorboard: auto}", [&](const Value& entry) {
    std::string port;
    if (absl::Status bad = entry.text(&port); !bad.ok()) return bad;
    if (port != "auto") return entry.error(absl::StrCat("port '", entry.key(), "' must be auto"));
    task->add_ports(entry.key());
    return absl::OkStatus();
  });
}

absl::Status read_per_node(const Value& value, v1::JobSpec*, v1::Task* task) {
  int64_t number = 0;
  if (absl::Status bad = value.integer(1, kReplicasMax, &number); !bad.ok()) return bad;
  task->set_per_node(static_cast<uint32_t>(number));
  return absl::OkStatus();
}

absl::Status read_only_word(const Value& value, std::string_view served, std::string_view planned) {
  std::string word;
  if (absl::Status bad = value.text(&word); !bad.ok()) return bad;
  if (word == served) return absl::OkStatus();
  if (planned.empty() || word == planned) return value.planned(absl::StrCat(value.key(), ": ", word));
  return value.error(absl::StrCat("'", value.key(), "' must be ", std::string(served)));
}
absl::Status read_processes(const Value& value, v1::JobSpec*, v1::Task*) {
  return read_only_word(value, "one", "per_gpu");
}
absl::Status read_image(const Value& value, v1::JobSpec*, v1::Task*) {
  return read_only_word(value, "none", "");
}

absl::Status read_on_failure(const Value& value, v1::JobSpec*, v1::Task* task) {
  std::string word;
  if (absl::Status bad = value.text(&word); !bad.ok()) return bad;
  if (word != "stop" && word != "ignore" && word != "restart")
    return value.error("'on_failure' must be stop, ignore or restart");
  task->set_on_failure(word == "stop"     ? v1::ON_FAILURE_STOP
                       : word == "ignore" ? v1::ON_FAILURE_IGNORE
                                          : v1::ON_FAILURE_RESTART);
  return absl::OkStatus();
}

absl::Status read_task_pack(const Value& value, v1::JobSpec*, v1::Task* task) {
  std::string word;
  if (absl::Status bad = value.text(&word); !bad.ok()) return bad;
  if (word != "none") return value.error("'pack' of a task must be none; the label is the job's");
  task->set_pack_none(true);
  return absl::OkStatus();
}

absl::Status read_task_name(const Value& value, v1::JobSpec*, v1::Task* task) {
  return value.text(task->mutable_name());
}

}  // namespace

const std::vector<Key>& member_keys() {
  static const std::vector<Key> kKeys = {
      {"name", kInTask, read_task_name},          {"replicas", kOfMember, read_replicas},
      {"resources", kOfMember, read_resources},   {"command", kOfMember, read_command},
      {"script", kOfMember, read_script},         {"env", kOfMember, read_env},
      {"image", kOfMember, read_image},           {"gpu_model", kOfEachMember, read_gpu_model},
      {"require", kOfEachMember, read_require},   {"not", kOfEachMember, read_not},
      {"prefer", kOfEachMember, read_prefer},     {"ports", kOfEachMember, read_ports},
      {"per_node", kOfEachMember, read_per_node}, {"processes", kOfEachMember, read_processes},
      {"on_failure", kInTask, read_on_failure},   {"pack", kInTask, read_task_pack},
  };
  return kKeys;
}

}  // namespace muster::spec
