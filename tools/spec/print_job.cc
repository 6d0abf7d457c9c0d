#include <yaml-cpp/yaml.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "tools/spec/job_file.h"
#include "tools/spec/quantity.h"

namespace muster::spec {
namespace {

using Strings = google::protobuf::RepeatedPtrField<std::string>;

// A key with a scalar, when it isn't the default.
template <typename T>
void put(YAML::Emitter& out, const char* key, const T& value, bool shown) {
  if (shown) out << YAML::Key << key << YAML::Value << value;
}

void put_words(YAML::Emitter& out, const char* key, const Strings& words) {
  if (words.empty()) return;
  out << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginSeq;
  for (const std::string& word : words) out << word;
  out << YAML::EndSeq;
}

void put_map(YAML::Emitter& out, const char* key,
             const google::protobuf::Map<std::string, std::string>& map) {
  if (map.empty()) return;
  const std::map<std::string, std::string> sorted(map.begin(), map.end());
  out << YAML::Key << key << YAML::Value << YAML::Flow << sorted;
}

void put_rules(YAML::Emitter& out, const char* key,
               const google::protobuf::RepeatedPtrField<v1::LabelRule>& rules) {
  if (rules.empty()) return;
  out << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginMap;
  for (const v1::LabelRule& rule : rules) put_words(out, rule.label().c_str(), rule.values());
  out << YAML::EndMap;
}

void put_resources(YAML::Emitter& out, const v1::Resources& r) {
  if (r.ByteSizeLong() == 0) return;
  out << YAML::Key << "resources" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "cpu", print_cpu(r.cpu_milli()), r.cpu_milli() > 0);
  put(out, "memory", print_bytes(r.memory_bytes()), r.memory_bytes() > 0);
  put(out, "gpu", print_gpu(r.gpu_milli()), r.gpu_milli() > 0);
  put(out, "shm", print_bytes(r.shm_bytes()), r.shm_bytes() > 0);
  out << YAML::EndMap;
}

// As a block where a block reads back as the same text, else quoted.
void put_script(YAML::Emitter& out, const std::string& script) {
  if (script.empty()) return;
  const bool block =
      script.ends_with('\n') && !script.ends_with("\n\n") && script[0] != ' ' && script[0] != '\n';
  out << YAML::Key << "script" << YAML::Value;
  if (block) out << YAML::Literal;
  out << script;
}

void put_member(YAML::Emitter& out, const v1::Task& task) {
  put(out, "replicas", task.replicas(), task.replicas() > 0);
  put_resources(out, task.resources());
  put_words(out, "gpu_model", task.gpu_model());
  put_rules(out, "require", task.require());
  put_rules(out, "not", task.exclude());
  put_rules(out, "prefer", task.prefer());
  put(out, "per_node", task.per_node(), task.per_node() > 0);
  put_words(out, "command", task.command());
  put_script(out, task.script());
  put_map(out, "env", task.env());
  if (!task.ports().empty()) {
    out << YAML::Key << "ports" << YAML::Value << YAML::Flow << YAML::BeginMap;
    for (const std::string& port : task.ports()) put(out, port.c_str(), "auto", true);
    out << YAML::EndMap;
  }
}

void put_task(YAML::Emitter& out, const v1::Task& task) {
  out << YAML::BeginMap;
  put(out, "name", task.name(), true);
  put_member(out, task);
  put(out, "on_failure", "ignore", task.on_failure() == v1::ON_FAILURE_IGNORE);
  put(out, "on_failure", "restart", task.on_failure() == v1::ON_FAILURE_RESTART);
  put(out, "pack", "none", task.pack_none());
  out << YAML::EndMap;
}

void put_tasks(YAML::Emitter& out, const v1::JobSpec& job) {
  const v1::Task* only = job.tasks_size() == 1 ? &job.tasks(0) : nullptr;
  if (only != nullptr && only->name() == "main" && !only->pack_none() &&
      only->on_failure() == v1::ON_FAILURE_STOP) {
    put_member(out, *only);
    return;
  }
  out << YAML::Key << "tasks" << YAML::Value << YAML::BeginSeq;
  for (const v1::Task& task : job.tasks()) put_task(out, task);
  out << YAML::EndSeq;
}

void put_retries(YAML::Emitter& out, const v1::Retries& retries) {
  if (!retries.has_own() && !retries.has_infrastructure() && !retries.has_start()) return;
  out << YAML::Key << "retries" << YAML::Value << YAML::Flow << YAML::BeginMap;
  put(out, "own", retries.own(), retries.has_own());
  put(out, "infrastructure", retries.infrastructure(), retries.has_infrastructure());
  put(out, "start", retries.start(), retries.has_start());
  out << YAML::EndMap;
}

void put_array(YAML::Emitter& out, const v1::Array& array) {
  if (array.count() == 0 && array.running() == 0 && array.sweep().empty()) return;
  out << YAML::Key << "array" << YAML::Value << YAML::BeginMap;
  put(out, "count", array.count(), array.count() > 0);
  put(out, "running", array.running(), array.running() > 0);
  if (!array.sweep().empty()) {
    out << YAML::Key << "sweep" << YAML::Value << YAML::BeginMap;
    for (const v1::SweepValues& sweep : array.sweep())
      put_words(out, sweep.parameter().c_str(), sweep.values());
    out << YAML::EndMap;
  }
  out << YAML::EndMap;
}

void put_ties(YAML::Emitter& out, const v1::JobSpec& job) {
  if (job.has_pack()) {
    put(out, "pack", job.pack().soft() ? absl::StrCat("prefer: ", job.pack().label()) : job.pack().label(),
        true);
  }
  if (job.after().ok_size() + job.after().any_size() > 0) {
    out << YAML::Key << "after" << YAML::Value << YAML::Flow << YAML::BeginMap;
    put_words(out, "ok", job.after().ok());
    put_words(out, "any", job.after().any());
    out << YAML::EndMap;
  }
  put_array(out, job.array());
}

}  // namespace

std::string print_job_file(const v1::JobSpec& job) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  put(out, "name", job.name(), !job.name().empty());
  put(out, "queue", job.queue(), !job.queue().empty());
  put(out, "user", job.user(), !job.user().empty());
  put(out, "priority", job.priority(), job.priority() != 0);
  put(out, "preemptible", true, job.preemptible());
  put(out, "hold", true, job.hold());
  put_tasks(out, job);
  put_ties(out, job);
  put(out, "workdir", job.workdir(), !job.workdir().empty());
  put(out, "time_limit", print_duration(job.time_limit_ms()), job.time_limit_ms() > 0);
  put(out, "expected", print_duration(job.expected_ms()), job.expected_ms() > 0);
  put(out, "grace", print_duration(job.grace_ms()), job.has_grace_ms());
  put(out, "signal", job.signal(), !job.signal().empty());
  put_retries(out, job.retries());
  put(out, "success", job.success(), !job.success().empty());
  put(out, "start_limit", print_duration(job.start_limit_ms()), job.has_start_limit_ms());
  if (job.on_disconnect().stop_after_ms() > 0) {
    out << YAML::Key << "on_disconnect" << YAML::Value << YAML::Flow << YAML::BeginMap;
    put(out, "stop_after", print_duration(job.on_disconnect().stop_after_ms()), true);
    out << YAML::EndMap;
  }
  put_map(out, "labels", job.labels());
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace muster::spec
