#include "tools/spec/job_file.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/spec/readers.h"

namespace muster::spec {
namespace {

const Key* find_key(const std::vector<Key>& keys, std::string_view name) {
  for (const Key& key : keys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

std::vector<std::string> names_at_top() {
  std::vector<std::string> names = {"tasks"};
  for (const Key& key : job_keys()) names.emplace_back(key.name);
  for (const Key& key : member_keys()) {
    if (key.scope & kSugar) names.emplace_back(key.name);
  }
  return names;
}

std::vector<std::string> names_in_task() {
  std::vector<std::string> names;
  for (const Key& key : member_keys()) names.emplace_back(key.name);
  return names;
}

absl::Status check_command(const Value& where, const v1::Task& task, const std::string& whose) {
  if (task.command().empty() != task.script().empty()) return absl::OkStatus();
  return where.error(absl::StrCat(whose, task.script().empty()
                                             ? " has no 'command' and no 'script'"
                                             : " has both 'command' and 'script'; give one"));
}

absl::Status read_task(const Value& value, const v1::Task& defaults, bool needs_command, v1::Task* task) {
  *task = defaults;
  absl::Status bad = value.each("as in {name: learner, command: [./learner]}", [&](const Value& entry) {
    const Key* key = find_key(member_keys(), entry.key());
    if (key != nullptr) return key->read(entry, nullptr, task);
    if (find_key(job_keys(), entry.key()) != nullptr)
      return entry.error(absl::StrCat("'", entry.key(), "' is the job's, not a task's"));
    return entry.unknown_key(names_in_task());
  });
  if (!bad.ok()) return bad;
  if (task->name().empty()) return value.error("a task must have a 'name'");
  if (!needs_command) return absl::OkStatus();
  return check_command(value, *task, absl::StrCat("task '", task->name(), "'"));
}

// One key at the top. `tasks` is read last, by read_job: it needs the defaults.
absl::Status read_top(const Value& entry, bool has_tasks, const std::vector<std::string>& extra_names,
                      v1::JobSpec* job, v1::Task* task) {
  if (entry.key() == "tasks") return absl::OkStatus();
  if (const Key* key = find_key(job_keys(), entry.key())) return key->read(entry, job, task);
  const Key* key = find_key(member_keys(), entry.key());
  if (key == nullptr) {
    std::vector<std::string> names = names_at_top();
    names.insert(names.end(), extra_names.begin(), extra_names.end());
    return entry.unknown_key(names);
  }
  if (has_tasks && !(key->scope & kForTasks))
    return entry.error(absl::StrCat("'", entry.key(), "' belongs into each task, since there are 'tasks'"));
  if (!has_tasks && !(key->scope & kSugar))
    return entry.error(absl::StrCat("'", entry.key(), "' belongs into a task of 'tasks'"));
  return key->read(entry, job, task);
}

}  // namespace

absl::StatusOr<v1::JobSpec> read_job(const Value& top, const ReadExtra& extra,
                                     const std::vector<std::string>& extra_names) {
  v1::JobSpec job;
  v1::Task task;
  bool has_tasks = false;
  const auto find_tasks = [&](const Value& entry) {
    has_tasks = has_tasks || entry.key() == "tasks";
    return absl::OkStatus();
  };
  absl::Status bad = top.each("as in {replicas: 4, command: [./train]}", find_tasks);
  if (!bad.ok()) return bad;
  bad = top.each("", [&](const Value& entry) {
    if (extra) {
      const absl::StatusOr<bool> taken = extra(entry);
      if (!taken.ok() || *taken) return taken.status();
    }
    return read_top(entry, has_tasks, extra_names, &job, &task);
  });
  if (!bad.ok()) return bad;
  if (!has_tasks) {
    task.set_name("main");
    *job.add_tasks() = task;
    if (extra) return job;
    if (bad = check_command(top, task, "the job"); !bad.ok()) return bad;
    return job;
  }
  bad = top.each("", [&](const Value& entry) -> absl::Status {
    if (entry.key() != "tasks") return absl::OkStatus();
    if (entry.is_list() && entry.size() == 0) return entry.error("'tasks' must have at least one task");
    return entry.each_element(
        [&](const Value& element) { return read_task(element, task, !extra, job.add_tasks()); });
  });
  if (!bad.ok()) return bad;
  return job;
}

namespace {

absl::Status usage(const Given& given, std::string_view rule) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", std::string(given.option->name), " ", given.value, ": ", std::string(rule)));
}

// The node at a.b of the path, made when missing. An undefined one: the file has something there that no
// option can lie over; reading it says what is wrong with it.
YAML::Node node_at(YAML::Node top, std::string_view path) {
  YAML::Node node = top;
  for (const auto& step : absl::StrSplit(absl::string_view(path.data(), path.size()), '.')) {
    if (node.IsDefined() && !node.IsMap() && !node.IsNull()) return YAML::Node(YAML::NodeType::Undefined);
    node.reset(node[std::string(step)]);
  }
  return node;
}

YAML::Node list_of(std::string_view text) {
  YAML::Node list(YAML::NodeType::Sequence);
  for (const auto& word : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    list.push_back(std::string(word));
  }
  return list;
}

absl::Status lay_map_entry(const Given& given, bool lists, YAML::Node node, std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return usage(given, "must be NAME=VALUE");
  const std::string name(text.substr(0, equals));
  const std::string_view value = text.substr(equals + 1);
  if (node.IsDefined() && !node.IsMap() && !node.IsNull()) node = YAML::Node(YAML::NodeType::Map);
  if (lists && value.find(',') != std::string_view::npos) {
    node[name] = list_of(value);
  } else {
    node[name] = std::string(value);
  }
  return absl::OkStatus();
}

// `array: 100` is `array: {count: 100}`: so that --array-running can lie beside it.
void spread_array(YAML::Node top) {
  const YAML::Node array = top["array"];
  if (!array.IsDefined() || !array.IsScalar()) return;
  YAML::Node map(YAML::NodeType::Map);
  map["count"] = array;
  top["array"] = map;
}

absl::Status lay_option(const Given& given, YAML::Node top) {
  if (given.option->path == "array.running") spread_array(top);
  YAML::Node node = node_at(top, given.option->path);
  switch (given.option->kind) {
    case OptionKind::kScalar:
    case OptionKind::kFlag:
      node = given.value;
      return absl::OkStatus();
    case OptionKind::kList:
      node = list_of(given.value);
      return absl::OkStatus();
    case OptionKind::kMap:
      return lay_map_entry(given, false, node, given.value);
    case OptionKind::kMapOfLists:
      return lay_map_entry(given, true, node, given.value);
    case OptionKind::kScalarOrMap:
      break;
  }
  if (given.value.find('=') == std::string::npos) {
    // Beside other keys of the array a bare number is its count.
    if (given.option->path == "array" && node.IsDefined() && node.IsMap()) {
      node["count"] = given.value;
    } else {
      node = given.value;
    }
    return absl::OkStatus();
  }
  for (const auto& entry : absl::StrSplit(given.value, ',')) {
    if (absl::Status bad = lay_map_entry(given, false, node, std::string_view(entry.data(), entry.size()));
        !bad.ok())
      return bad;
  }
  return absl::OkStatus();
}

absl::Status lay_over(const Overrides& overrides, YAML::Node top) {
  if (!top.IsMap()) return absl::OkStatus();  // reading it says what is wrong
  for (const Given& given : overrides.options) {
    if (absl::Status bad = lay_option(given, top); !bad.ok()) return bad;
  }
  if (!overrides.command.empty()) {
    YAML::Node words(YAML::NodeType::Sequence);
    for (const std::string& word : overrides.command) words.push_back(word);
    top["command"] = words;
    top.remove("script");
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::JobSpec> read_document(const Source& source, YAML::Node top, const Overrides& overrides) {
  if (absl::Status bad = lay_over(overrides, top); !bad.ok()) return bad;
  return read_job(Value(&source, "", "", top, top));
}

}  // namespace

absl::StatusOr<std::vector<v1::JobSpec>> parse_job_file(std::string_view text, const std::string& file,
                                                        const std::string& directory,
                                                        const Overrides& overrides) {
  if (text.size() > kFileBytesMax)
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": has ", text.size(), " bytes; a job file has at most ", kFileBytesMax));
  const Source source{file, directory};
  std::vector<v1::JobSpec> jobs;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > kFileJobsMax)
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": has ", documents.size(), " jobs; a job file has at most ", kFileJobsMax));
    for (const YAML::Node& document : documents) {
      if (!document.IsDefined() || document.IsNull()) continue;
      absl::StatusOr<v1::JobSpec> job = read_document(source, document, overrides);
      if (!job.ok()) return job.status();
      jobs.push_back(*std::move(job));
    }
  } catch (const YAML::Exception& error) {
    return not_yaml(file, error);
  }
  if (jobs.empty()) return absl::InvalidArgumentError(absl::StrCat(file, ": has no job"));
  return jobs;
}

absl::StatusOr<v1::JobSpec> parse_job_options(const Overrides& overrides, const std::string& directory) {
  const Source source{"the command line", directory};
  try {
    return read_document(source, YAML::Node(YAML::NodeType::Map), overrides);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("the command line: ", error.msg));
  }
}

}  // namespace muster::spec
