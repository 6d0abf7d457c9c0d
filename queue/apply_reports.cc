// What agents report. A report counts once (node incarnation, sequence), only from the node's present
// session, and only under the fence of the attempt that lives.
#include <algorithm>

#include "queue/fold.h"

namespace muster::queue {
namespace {

// Whether the report is new. A duplicate is OK and changes nothing; out->duplicate says so.
bool accept(Fold& fold, const v1::ReportHeader& report, Outcome* out) {
  const auto it = fold.state.nodes.find(report.node());
  if (it == fold.state.nodes.end()) {
    *out = refuse(absl::StatusCode::kNotFound, absl::StrCat("no node '", report.node(), "'"));
    return false;
  }
  v1::NodeState& node = it->second.state;
  if (node.incarnation() != report.incarnation() || node.session() != report.session()) {
    *out = refuse(absl::StrCat("a report of an earlier session of node '", report.node(), "'"));
    return false;
  }
  if (report.sequence() <= node.last_sequence()) {
    out->duplicate = true;
    return false;
  }
  node.set_last_sequence(report.sequence());
  fold.state.touch(it->second);
  return true;
}

// The member that a report is about, if its attempt lives and this is its node.
v1::MemberState* find_member(Fold& fold, const v1::ReportHeader& report, const v1::MemberRef& ref, Job** job,
                             Outcome* out) {
  fold.state.note_event(ref.job());
  *job = fold.state.find({ref.job(), ref.element()});
  if (*job == nullptr || !holds_places((*job)->state.phase())) {
    *out = refuse(absl::StrCat("job ", job_name(ref.job(), ref.element()), " has no attempt that lives"));
    return nullptr;
  }
  v1::AttemptState& attempt = *(*job)->state.mutable_attempt();
  if (attempt.fence().position() != ref.fence().position() ||
      attempt.fence().nonce() != ref.fence().nonce() || ref.rank() >= (*job)->info->members) {
    *out = refuse(absl::StrCat("fenced: attempt ", ref.attempt(), " of job ",
                               job_name(ref.job(), ref.element()), " is not the one that lives"));
    return nullptr;
  }
  v1::MemberState* member = attempt.mutable_members(static_cast<int>(ref.rank()));
  if (member->node() != report.node() || member->phase() == v1::MEMBER_EXITED ||
      member->phase() == v1::MEMBER_LOST) {
    *out = refuse(absl::StrCat("rank ", ref.rank(), " has ended, or is another node's"));
    return nullptr;
  }
  return member;
}

v1::Reason reason_of(const v1::Exited& body) {
  if (body.never_started()) return v1::START_FAILED;
  if (body.supervisor_lost()) return v1::SUPERVISOR_LOST;
  if (body.out_of_memory()) return v1::OUT_OF_MEMORY;
  return body.signal() != 0 ? v1::SIGNAL : v1::EXIT;
}

int exit_code_of(const v1::Exited& body) {
  if (body.never_started() || body.supervisor_lost()) return 100;
  if (body.signal() != 0) return 128 + body.signal();
  return body.out_of_memory() && body.code() == 0 ? 137 : body.code();
}

// A failed member whose task says so runs again in its place, after a while that doubles.
bool restarts(const Job& job, const v1::Exited& body) {
  if (job.state.phase() == v1::STOPPING || body.never_started()) return false;
  if (exit_code_of(body) == 0) return false;
  return job.info->tasks[job.info->task_of(body.member().rank())].on_failure == v1::ON_FAILURE_RESTART;
}

}  // namespace

Outcome apply_prepared(Fold& fold, const v1::Prepared& body) {
  Outcome out;
  if (!accept(fold, body.report(), &out)) return out;
  Job* job = nullptr;
  v1::MemberState* member = find_member(fold, body.report(), body.member(), &job, &out);
  if (member == nullptr) return out;
  if (member->phase() != v1::MEMBER_PLACED) return refuse("the member is prepared already");
  member->set_phase(v1::MEMBER_PREPARED);
  member->set_run(1);
  member->set_address(body.address());
  member->set_port(body.port());
  *member->mutable_ports() = body.ports();
  review(fold, *job);
  return out;
}

Outcome apply_prepare_failed(Fold& fold, const v1::PrepareFailed& body) {
  Outcome out;
  if (!accept(fold, body.report(), &out)) return out;
  Job* job = nullptr;
  v1::MemberState* member = find_member(fold, body.report(), body.member(), &job, &out);
  if (member == nullptr) return out;
  member->set_phase(v1::MEMBER_EXITED);
  member->set_reason(v1::START_FAILED);
  member->set_exit_code(100);
  member->set_message(body.message());
  if (job->state.phase() == v1::STOPPING) {
    review(fold, *job);
    return out;
  }
  fold.state.nodes.at(body.report().node())
      .state.set_start_failures(fold.state.nodes.at(body.report().node()).state.start_failures() +
                                (body.own() ? 0 : 1));
  const v1::AttemptEnd end = body.own() ? v1::END_FAILED : v1::END_START_FAILED;
  // What is missing for the job will be missing again: its own retries are not for this.
  if (body.own()) job->state.set_own_failures(std::max(job->state.own_failures(), job->info->retries_own));
  begin_stop(fold, *job, {end, v1::START_FAILED, static_cast<int>(body.member().rank()), body.message()});
  return out;
}

Outcome apply_started(Fold& fold, const v1::Started& body) {
  Outcome out;
  if (!accept(fold, body.report(), &out)) return out;
  Job* job = nullptr;
  v1::MemberState* member = find_member(fold, body.report(), body.member(), &job, &out);
  if (member == nullptr) return out;
  if (body.run() != member->run() || member->phase() != v1::MEMBER_PREPARED)
    return refuse(
        absl::StrCat("rank ", body.member().rank(), " does not await the start of run ", body.run()));
  member->set_phase(v1::MEMBER_RUNNING);
  member->set_started(true);
  review(fold, *job);
  return out;
}

Outcome apply_exited(Fold& fold, const v1::Exited& body) {
  Outcome out;
  if (!accept(fold, body.report(), &out)) return out;
  Job* job = nullptr;
  v1::MemberState* member = find_member(fold, body.report(), body.member(), &job, &out);
  if (member == nullptr) return out;
  if (body.run() < member->run() && !body.never_started())
    return refuse(absl::StrCat("run ", body.run(), " of rank ", body.member().rank(), " is over already"));
  if (!body.never_started()) member->set_started(true);
  member->set_exit_code(exit_code_of(body));
  member->set_reason(reason_of(body));
  member->set_message(body.message());
  member->set_output_bytes(body.output_bytes());
  if (restarts(*job, body)) {
    const uint32_t failures = std::min<uint32_t>(member->run(), 7);
    member->set_phase(v1::MEMBER_RESTARTING);
    member->set_restart_at_ms(fold.now_ms() + std::min<int64_t>(500LL << failures, 60'000));
  } else {
    member->set_phase(v1::MEMBER_EXITED);
  }
  review(fold, *job);
  return out;
}

}  // namespace muster::queue
