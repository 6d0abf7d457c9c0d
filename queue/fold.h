// Inside the fold: what every apply_* function is given, and the life of a gang that they share. Included
// only by queue/apply*.cc and queue/gang.cc.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/apply.h"
#include "queue/state.h"

namespace muster::queue {

struct Fold {
  State& state;
  const LogInput& input;
  const v1::Record& record;
  const Found& found;
  Effects* effects;

  int64_t now_ms() const { return state.meta.cell_ms(); }
  // Whether the record comes from the server that holds the term.
  bool from_owner() const {
    return record.term() == state.meta.term() && record.writer().session() == state.meta.owner();
  }
  void changed(const Job& job) const { effects->gangs.push_back(job.key()); }
};

inline Outcome refuse(absl::StatusCode code, std::string message) {
  Outcome out;
  out.code = code;
  out.message = std::move(message);
  return out;
}
inline Outcome refuse(std::string message) {
  return refuse(absl::StatusCode::kFailedPrecondition, std::move(message));
}

// ---- apply_cell.cc ----
Outcome apply_log_opened(Fold& fold, const v1::LogOpened& body);
Outcome apply_server_joined(Fold& fold, const v1::ServerJoined& body);
Outcome apply_server_beat(Fold& fold, const v1::ServerBeat& body);
Outcome apply_term_claimed(Fold& fold, const v1::TermClaimed& body);
Outcome apply_tick(Fold& fold, const v1::Tick& body);
Outcome apply_format_activated(Fold& fold, const v1::FormatActivated& body);
Outcome apply_policy_set(Fold& fold, const v1::PolicySet& body);
Outcome apply_queue_set(Fold& fold, const v1::QueueSet& body);
Outcome apply_queue_removed(Fold& fold, const v1::QueueRemoved& body);

// ---- apply_jobs.cc ----
Outcome apply_submitted(Fold& fold, const v1::Submitted& body);
Outcome apply_cancel(Fold& fold, const v1::CancelRequested& body);
Outcome apply_hold(Fold& fold, uint64_t job, uint32_t element, bool held);
Outcome apply_requeue(Fold& fold, const v1::RequeueRequested& body);
Outcome apply_updated(Fold& fold, const v1::Updated& body);

// Elements of arrays. element = index + 1.
bool take_waiting_element(v1::ArrayState* array, uint32_t index);  // false: it does not wait
Job& add_element(Fold& fold, const Job& array, uint32_t element);  // the caller counts it as live

// ---- apply_nodes.cc ----
Outcome apply_session_opened(Fold& fold, const v1::SessionOpened& body);
Outcome apply_node_unreachable(Fold& fold, const v1::NodeUnreachable& body);
Outcome apply_node_lost(Fold& fold, const v1::NodeLost& body);
// When a node that is out of reach is lost, in cell time, with what is on it now.
int64_t lost_at_ms(const State& state, const NodeEntry& node);
Outcome apply_node_set(Fold& fold, const v1::NodeSet& body);

// ---- apply_gang.cc ----
Outcome apply_placed(Fold& fold, const v1::Placed& body);
Outcome apply_gang_stopped(Fold& fold, const v1::GangStopped& body);
Outcome apply_member_restarted(Fold& fold, const v1::MemberRestarted& body);

// ---- apply_reports.cc ----
Outcome apply_prepared(Fold& fold, const v1::Prepared& body);
Outcome apply_prepare_failed(Fold& fold, const v1::PrepareFailed& body);
Outcome apply_started(Fold& fold, const v1::Started& body);
Outcome apply_exited(Fold& fold, const v1::Exited& body);

// ---- gang.cc: the life of an attempt and the end of a job ----

struct StopCause {
  v1::AttemptEnd end = v1::END_NONE;
  v1::Reason reason = v1::REASON_NONE;
  int rank = -1;  // the member that decided; -1: none
  std::string message;
};
// Decides where the gang goes (by its retry budgets) and stops it: its members get stop orders, and when the
// last one has confirmed, its places are free.
void begin_stop(Fold& fold, Job& job, const StopCause& cause);
// After a member's phase changed: passes the barrier, finds the gang running, ended, or stopped. May end the
// job.
void review(Fold& fold, Job& job);
void member_lost(Fold& fold, Job& job, uint32_t rank);
// Ends a job, or an array's element, that holds no places; wakes or ends what depends on it.
void finish(Fold& fold, Job& job, v1::Phase phase, v1::Reason reason, int exit, const std::string& message);
// Ends the array if it has nothing left to run.
void review_array(Fold& fold, Job& array);

}  // namespace muster::queue
