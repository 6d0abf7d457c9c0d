#include "tools/cli/job_view.h"

#include "absl/strings/str_cat.h"
#include "tools/cli/names.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

std::string without_prefix(std::string name, std::string_view prefix) {
  if (name.starts_with(prefix)) name.erase(0, prefix.size());
  return name;
}

bool has_ended(const v1::MemberState& member) {
  return member.phase() == v1::MEMBER_EXITED || member.phase() == v1::MEMBER_LOST;
}

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json attempt_json(const v1::AttemptState& attempt, const v1::JobSpec& spec) {
  Json out;
  out["attempt"] = attempt.number();
  out["position"] = attempt.fence().position();
  out["end"] = or_null(end_name(attempt.end()));
  out["reason"] = or_null(reason_name(attempt.reason()));
  Json members = Json::array();
  for (int rank = 0; rank < attempt.members_size(); ++rank) {
    const v1::MemberState& member = attempt.members(rank);
    Json one;
    one["task"] = task_of_rank(spec, static_cast<uint32_t>(rank)).task;
    one["rank"] = rank;
    one["node"] = member.node();
    one["exit"] =
        member.phase() == v1::MEMBER_EXITED && member.started() ? Json(member.exit_code()) : Json(nullptr);
    one["state"] = member_phase_name(member.phase());
    if (has_ended(member)) one["reason"] = or_null(reason_name(member.reason()));
    if (!member.devices().empty()) one["devices"] = member.devices();
    members.push_back(std::move(one));
  }
  out["members"] = std::move(members);
  return out;
}

std::string array_words(const v1::ArrayState& array) {
  std::string out = absl::StrCat(array.succeeded(), " succeeded");
  if (array.failed() > 0) absl::StrAppend(&out, ", ", array.failed(), " failed");
  if (array.cancelled() > 0) absl::StrAppend(&out, ", ", array.cancelled(), " cancelled");
  if (array.live() > 0) absl::StrAppend(&out, ", ", array.live(), " placed");
  uint64_t waiting = 0;
  for (const v1::IndexRange& range : array.pending()) waiting += range.last() - range.first() + 1;
  if (waiting > 0) absl::StrAppend(&out, ", ", waiting, " waiting");
  return out;
}

}  // namespace

bool terminal(v1::Phase phase) {
  return phase == v1::SUCCEEDED || phase == v1::FAILED || phase == v1::CANCELLED;
}
std::string phase_name(v1::Phase phase) {
  return v1::Phase_Name(phase);
}
std::string reason_name(v1::Reason reason) {
  return reason == v1::REASON_NONE ? "" : v1::Reason_Name(reason);
}
std::string end_name(v1::AttemptEnd end) {
  return end == v1::END_NONE ? "" : without_prefix(v1::AttemptEnd_Name(end), "END_");
}
std::string member_phase_name(v1::MemberPhase phase) {
  return without_prefix(v1::MemberPhase_Name(phase), "MEMBER_");
}

Json job_json(const v1::JobView& view) {
  const v1::JobState& state = view.state();
  Json out = json_object();
  out["id"] = state.id();
  if (state.element() > 0) out["element"] = state.element() - 1;
  out["name"] = state.name();
  out["queue"] = state.queue();
  out["user"] = state.user();
  out["state"] = phase_name(state.phase());
  out["reason"] = or_null(reason_name(state.reason()));
  out["job_exit"] = terminal(state.phase()) ? Json(state.job_exit()) : Json(nullptr);
  if (!state.message().empty()) out["message"] = state.message();
  if (state.held()) out["held"] = true;
  if (!view.pending_reason().empty()) out["pending"] = view.pending_reason();
  if (view.never()) out["never"] = true;
  if (view.unreachable()) out["unreachable"] = true;
  if (state.retry_of() > 0) out["retry_of"] = state.retry_of();
  Json attempts = Json::array();
  for (const v1::AttemptState& attempt : state.past()) attempts.push_back(attempt_json(attempt, view.spec()));
  if (state.has_attempt()) attempts.push_back(attempt_json(state.attempt(), view.spec()));
  out["attempts"] = std::move(attempts);
  return out;
}

int exit_code_of(const v1::JobView& view) {
  const v1::JobState& state = view.state();
  switch (state.phase()) {
    case v1::SUCCEEDED:
      return kDone;
    case v1::CANCELLED:
      return kCancelled;
    case v1::FAILED:
      return state.job_exit() > 0 && state.job_exit() < 256 ? state.job_exit() : kJobFailed;
    default:
      return kNotFinished;
  }
}

std::string why_words(const v1::JobState& state, const std::string& pending_reason) {
  if (state.has_array() && state.element() == 0) return array_words(state.array());
  if (state.phase() == v1::PENDING) return state.held() ? "held" : pending_reason;
  if (!terminal(state.phase()))
    return state.phase() == v1::STOPPING ? reason_name(state.attempt().reason()) : "";
  std::string out = reason_name(state.reason());
  if (state.phase() == v1::FAILED && state.job_exit() != 0) absl::StrAppend(&out, " ", state.job_exit());
  if (!state.message().empty()) absl::StrAppend(&out, out.empty() ? "" : ": ", state.message());
  return out;
}

}  // namespace muster::tools
