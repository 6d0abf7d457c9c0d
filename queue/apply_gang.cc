// The leader's decisions about gangs. Each is checked against the state at its place in the log, and refused
// when it no longer holds: two leaders at once are harmless.
#include <algorithm>
#include <vector>

#include "queue/fold.h"

namespace muster::queue {
namespace {

Outcome check_waiting(Fold& fold, const v1::Placed& body, const Job& job) {
  const v1::JobState& state = job.state;
  const bool next_element = job.is_array();
  if (!next_element && state.phase() != v1::PENDING)
    return refuse(absl::StrCat("the gang is ", v1::Phase_Name(state.phase())));
  if (state.held()) return refuse("the gang is held");
  if (!state.waits().empty()) return refuse("the gang waits for another job");
  if (state.revision() != body.revision())
    return refuse(
        absl::StrCat("the gang is at revision ", state.revision(), ", the plan saw ", body.revision()));
  const uint32_t next = next_element ? 1 : state.attempts() + 1;
  if (body.attempt() != next)
    return refuse(absl::StrCat("the next attempt is ", next, ", the plan's is ", body.attempt()));
  if (state.not_before_ms() > fold.now_ms()) return refuse("the gang is backing off");
  if (next_element && state.array_running() > 0 && state.array().live() >= state.array_running())
    return refuse("the array runs as many elements as it may");
  if (static_cast<uint32_t>(body.places_size()) != job.info->members)
    return refuse(absl::StrCat("the gang has ", job.info->members, " members, the plan ", body.places_size(),
                               " places"));
  return {};
}

Outcome check_node(Fold& fold, const v1::Place& place) {
  const scheduler::Node* node = fold.state.cluster.find(place.node());
  if (node == nullptr) return refuse(absl::StrCat("no node '", place.node(), "'"));
  if (node->revision != place.node_revision())
    return refuse(absl::StrCat("node '", place.node(), "' was described anew"));
  if (node->session != place.node_session())
    return refuse(absl::StrCat("node '", place.node(), "' has a new session"));
  if (!node->schedulable)
    return refuse(absl::StrCat("node '", place.node(), "' is out of reach, draining or quarantined"));
  return {};
}

// Whether all places are free together; takes them one by one and gives them back.
Outcome check_places(Fold& fold, const v1::Placed& body, const Job& job) {
  scheduler::Cluster& cluster = fold.state.cluster;
  std::vector<std::pair<const std::string*, scheduler::Holding>> taken;
  scheduler::Amounts models;
  Outcome out;
  for (int rank = 0; rank < body.places_size() && out.ok(); ++rank) {
    const v1::Place& place = body.places(rank);
    out = check_node(fold, place);
    if (!out.ok()) break;
    const scheduler::TaskRequest& task = job.shape->tasks[job.info->task_of(rank)];
    scheduler::Holding holding{task.each, {place.devices().begin(), place.devices().end()}, job.key()};
    if (static_cast<int64_t>(holding.devices.size()) != task.each.gpus ||
        !cluster.can_hold(place.node(), holding)) {
      out = refuse(absl::StrCat("not enough is free on node '", place.node(), "'"));
      break;
    }
    for (const scheduler::DeviceSlot& slot : cluster.find(place.node())->devices) {
      for (uint32_t device : holding.devices) {
        if (slot.index == device) models[slot.model] += 1000;
      }
    }
    cluster.hold(place.node(), holding);
    taken.emplace_back(&place.node(), std::move(holding));
  }
  for (const auto& [node, holding] : taken) cluster.release(*node, holding);
  if (!out.ok()) return out;
  if (auto block =
          fold.state.usage.blocks(job.state.queue(), job.shape->total(), models, job.shape->preemptible))
    return refuse(absl::StrCat("queue '", block->queue, "' would pass its ", block->limit ? "limit" : "quota",
                               " of ", block->resource));
  return out;
}

void begin_attempt(Fold& fold, Job& job, const v1::Placed& body) {
  v1::JobState& state = job.state;
  if (state.has_attempt()) {
    // Kept for `show`, the newest ones only, so that a job that is preempted for ever stays small.
    constexpr int kPastKept = 20;
    auto* past = state.mutable_past();
    past->Add()->Swap(state.mutable_attempt());
    if (past->size() > kPastKept) past->DeleteSubrange(0, past->size() - kPastKept);
  }
  state.clear_attempt();
  v1::AttemptState& attempt = *state.mutable_attempt();
  state.set_attempts(body.attempt());
  attempt.set_number(body.attempt());
  attempt.mutable_fence()->set_position(fold.input.position);
  attempt.mutable_fence()->set_nonce(fold.record.nonce());
  attempt.set_placed_ms(fold.now_ms());
  attempt.set_placed_wall_ms(fold.record.wall_ms());
  for (const v1::Place& place : body.places()) {
    v1::MemberState& member = *attempt.add_members();
    member.set_node(place.node());
    *member.mutable_devices() = place.devices();
  }
  state.clear_not_before_ms();
  fold.state.set_phase(job, v1::PLACED);
  fold.state.hold_places(job);
  fold.state.refresh_waiting(job);
  fold.state.refresh_deadline(job);
  fold.state.touch(job);
  fold.changed(job);
}

// The gang that a decision about a running attempt names.
Job* find_attempt(Fold& fold, uint64_t id, uint32_t element, uint32_t attempt, Outcome* out) {
  Job* job = fold.state.find({id, element});
  if (!fold.from_owner()) {
    *out = refuse("a decision of a stale term");
  } else if (job == nullptr || job->state.attempts() != attempt || !holds_places(job->state.phase())) {
    *out = refuse(absl::StrCat("attempt ", attempt, " of job ", job_name(id, element), " is over"));
  } else {
    return job;
  }
  return nullptr;
}

}  // namespace

Outcome apply_placed(Fold& fold, const v1::Placed& body) {
  fold.state.note_event(body.job());
  if (!fold.from_owner()) return refuse("a decision of a stale term");
  Job* job = fold.state.find({body.job(), body.element()});
  Job* array = nullptr;
  if (job == nullptr && body.element() != 0) job = array = fold.state.find({body.job(), 0});
  if (job == nullptr || job->is_array() != (array != nullptr))
    return refuse(absl::StatusCode::kNotFound, absl::StrCat("no job ", job_name(body.job(), body.element())));
  Outcome out = check_waiting(fold, body, *job);
  if (out.ok()) out = check_places(fold, body, *job);
  if (!out.ok()) return out;
  if (array != nullptr) {
    v1::ArrayState& counts = *array->state.mutable_array();
    fold.state.uncount(*array);
    const bool waited = take_waiting_element(&counts, body.element() - 1);
    fold.state.count(*array);
    if (!waited) return refuse(absl::StrCat("element ", body.element() - 1, " does not wait"));
    counts.set_live(counts.live() + 1);
    job = &add_element(fold, *array, body.element());
    fold.state.touch(*array);
    fold.state.refresh_waiting(*array);
    review_array(fold, *array);
  }
  begin_attempt(fold, *job, body);
  out.job = body.job();
  return out;
}

Outcome apply_gang_stopped(Fold& fold, const v1::GangStopped& body) {
  Outcome out;
  fold.state.note_event(body.job());
  Job* job = find_attempt(fold, body.job(), body.element(), body.attempt(), &out);
  if (job == nullptr) return out;
  const v1::AttemptState& attempt = job->state.attempt();
  const v1::Phase phase = job->state.phase();
  if (body.reason() == v1::START_LIMIT) {
    const int64_t due_ms = attempt.placed_ms() + job->info->start_limit_ms;
    if ((phase != v1::PLACED && phase != v1::STARTING) || fold.now_ms() < due_ms)
      return refuse("the start limit is not reached");
    begin_stop(fold, *job,
               {v1::END_START_FAILED, v1::START_LIMIT, -1, "not all members had started in time"});
  } else if (body.reason() == v1::TIME_LIMIT) {
    const int64_t limit_ms = job->state.time_limit_ms();
    if (phase != v1::RUNNING || limit_ms <= 0 || fold.now_ms() < attempt.running_ms() + limit_ms)
      return refuse("the time limit is not reached");
    // Not an own failure that could be retried: the same time would not suffice again.
    job->state.set_own_failures(std::max(job->state.own_failures(), job->info->retries_own));
    begin_stop(fold, *job, {v1::END_FAILED, v1::TIME_LIMIT, -1, ""});
  } else {
    return refuse(absl::StrCat("reason ", v1::Reason_Name(body.reason()), " stops no gang"));
  }
  return out;
}

Outcome apply_member_restarted(Fold& fold, const v1::MemberRestarted& body) {
  Outcome out;
  fold.state.note_event(body.job());
  Job* job = find_attempt(fold, body.job(), body.element(), body.attempt(), &out);
  if (job == nullptr) return out;
  if (body.rank() >= job->info->members || job->state.phase() == v1::STOPPING)
    return refuse("no such member runs");
  v1::MemberState& member = *job->state.mutable_attempt()->mutable_members(static_cast<int>(body.rank()));
  if (member.phase() != v1::MEMBER_RESTARTING || body.run() != member.run() + 1 ||
      fold.now_ms() < member.restart_at_ms())
    return refuse(absl::StrCat("rank ", body.rank(), " is not due for run ", body.run()));
  member.set_run(body.run());
  member.set_phase(v1::MEMBER_PREPARED);
  member.clear_restart_at_ms();
  fold.state.touch(*job);
  fold.state.refresh_deadline(*job);
  fold.changed(*job);
  return out;
}

}  // namespace muster::queue
