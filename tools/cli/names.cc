#include "tools/cli/names.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::tools {
namespace {

absl::Status not_a_name(std::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("'", std::string(text),
                                                 "' names no job; write 12, 12[3] (an element), 12.actor.0 "
                                                 "(a member), 12@2 (an attempt) or the job's name"));
}

bool number(std::string_view text, uint32_t* out) {
  const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && absl::SimpleAtoi(absl::string_view(text.data(), text.size()), out);
}

// ".actor.0" or ".0"
bool take_member(std::string_view text, JobName* out) {
  text.remove_prefix(1);
  const size_t dot = text.rfind('.');
  uint32_t index = 0;
  if (!number(dot == std::string_view::npos ? text : text.substr(dot + 1), &index)) return false;
  if (dot == std::string_view::npos) {
    out->rank = index;
    return true;
  }
  out->task = std::string(text.substr(0, dot));
  out->task_index = index;
  return !out->task.empty();
}

}  // namespace

absl::StatusOr<JobName> parse_job_name(std::string_view text) {
  JobName out;
  std::string_view rest = text;
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    if (!number(rest.substr(at + 1), &out.attempt) || out.attempt == 0) return not_a_name(text);
    rest = rest.substr(0, at);
  }
  const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  uint64_t id = 0;
  const bool by_id = digits > 0 && (digits == rest.size() || rest[digits] == '[' || rest[digits] == '.') &&
                     absl::SimpleAtoi(absl::string_view(rest.data(), digits), &id) && id > 0;
  // A name may have dots, so that a name's members are only named by --rank.
  const size_t end = by_id ? digits : std::min(rest.find('['), rest.size());
  if (by_id) {
    out.job.set_id(id);
  } else {
    if (end == 0 || digits == end) return not_a_name(text);
    out.job.set_name(std::string(rest.substr(0, end)));
  }
  rest.remove_prefix(end);
  if (!rest.empty() && rest[0] == '[') {
    const size_t close = rest.find(']');
    uint32_t element = 0;
    if (close == std::string_view::npos || !number(rest.substr(1, close - 1), &element) ||
        element == UINT32_MAX)
      return not_a_name(text);
    out.job.set_element(element + 1);
    rest.remove_prefix(close + 1);
  }
  if (!rest.empty() && (!by_id || rest[0] != '.' || !take_member(rest, &out))) return not_a_name(text);
  return out;
}

absl::StatusOr<v1::JobRef> parse_job_ref(std::string_view text) {
  absl::StatusOr<JobName> name = parse_job_name(text);
  if (!name.ok()) return name.status();
  if (name->attempt != 0 || name->rank.has_value() || !name->task.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        "'", std::string(text), "' is not a whole job; write 12, 12[3] (an element) or the job's name"));
  return name->job;
}

absl::StatusOr<uint32_t> rank_of(const JobName& name, const v1::JobSpec& spec) {
  if (name.rank.has_value()) return *name.rank;
  uint32_t first = 0;
  std::string tasks;
  for (const v1::Task& task : spec.tasks()) {
    if (task.name() == name.task) {
      if (name.task_index < task.replicas()) return first + name.task_index;
      return absl::NotFoundError(absl::StrCat("task '", name.task, "' has no member ", name.task_index,
                                              "; its members are 0 to ", task.replicas() - 1));
    }
    first += task.replicas();
    absl::StrAppend(&tasks, tasks.empty() ? "" : ", ", task.name());
  }
  return absl::NotFoundError(absl::StrCat("the job has no task '", name.task, "'; its tasks are ", tasks));
}

TaskOfRank task_of_rank(const v1::JobSpec& spec, uint32_t rank) {
  for (const v1::Task& task : spec.tasks()) {
    if (rank < task.replicas()) return {task.name(), rank};
    rank -= task.replicas();
  }
  return {"", rank};
}

}  // namespace muster::tools
