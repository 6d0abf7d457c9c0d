#include <algorithm>
#include <vector>

#include "queue/fold.h"

namespace muster::queue {
namespace {

constexpr int64_t kKeysKeptMs = int64_t{7} * 24 * 3600 * 1000;
constexpr int kPastAttemptsKept = 20;
constexpr int kExitUnknown = 100;  // FAILED without a code of the job's own
constexpr int kExitCancelled = 103;

bool ended(const v1::MemberState& member) {
  return member.phase() == v1::MEMBER_EXITED || member.phase() == v1::MEMBER_LOST;
}

bool failed(const v1::MemberState& member) {
  return ended(member) && (member.exit_code() != 0 || member.phase() == v1::MEMBER_LOST);
}

// Doubles from `first` with each failure, up to a minute.
int64_t back_off_ms(int64_t first_ms, uint32_t failures) {
  return std::min<int64_t>(first_ms << std::min<uint32_t>(failures - 1, 6), 60'000);
}

// Charges the attempt's end to its budget and says where the gang goes.
v1::Phase destination(Fold& fold, Job& job, const StopCause& cause, int64_t* wait_ms) {
  v1::JobState& state = job.state;
  switch (cause.end) {
    case v1::END_SUCCEEDED:
      return v1::SUCCEEDED;
    case v1::END_CANCELLED:
      return v1::CANCELLED;
    case v1::END_FAILED:
      if (cause.reason == v1::SUPERVISOR_LOST) break;
      state.set_own_failures(state.own_failures() + 1);
      *wait_ms = back_off_ms(1'000, state.own_failures());
      return state.own_failures() > job.info->retries_own ? v1::FAILED : v1::PENDING;
    case v1::END_START_FAILED:
      state.set_start_failures(state.start_failures() + 1);
      *wait_ms = back_off_ms(2'000, state.start_failures());
      return state.start_failures() > job.info->retries_start ? v1::FAILED : v1::PENDING;
    case v1::END_NODE_LOST:
      break;
    default:
      return v1::PENDING;  // requeued, preempted, drained, resized: nothing is charged
  }
  state.set_infrastructure_failures(state.infrastructure_failures() + 1);
  return state.infrastructure_failures() > job.info->retries_infrastructure ? v1::FAILED : v1::PENDING;
}

int exit_of(const Job& job) {
  const v1::AttemptState& attempt = job.state.attempt();
  const bool own =
      attempt.reason() == v1::EXIT || attempt.reason() == v1::SIGNAL || attempt.reason() == v1::OUT_OF_MEMORY;
  if (!own || attempt.cause_rank() == 0) return kExitUnknown;
  const int exit = attempt.members(static_cast<int>(attempt.cause_rank()) - 1).exit_code();
  return exit == 0 ? kExitUnknown : exit;
}

// All members have confirmed: the places are free, and the gang goes where begin_stop() decided.
void conclude(Fold& fold, Job& job) {
  v1::JobState& state = job.state;
  v1::AttemptState& attempt = *state.mutable_attempt();
  fold.state.release_places(job);
  attempt.set_ended_ms(fold.now_ms());
  attempt.set_ended_wall_ms(fold.record.wall_ms());
  fold.changed(job);
  const v1::Phase to = state.stopping_to();
  state.clear_stopping_to();
  if (to != v1::PENDING) {
    const int exit = to == v1::SUCCEEDED ? 0 : to == v1::CANCELLED ? kExitCancelled : exit_of(job);
    finish(fold, job, to, attempt.reason(), exit, attempt.message());
    return;
  }
  fold.state.set_phase(job, v1::PENDING);
  state.set_revision(state.revision() + 1);
  fold.state.refresh_deadline(job);
  fold.state.refresh_waiting(job);
  fold.state.touch(job);
}

// One member's end: what it means for a gang that is not stopping. True if the gang was stopped for it.
bool stop_for_member(Fold& fold, Job& job, int rank) {
  const v1::MemberState& member = job.state.attempt().members(rank);
  const uint32_t task = job.info->task_of(rank);
  const v1::OnFailure rule = job.info->tasks[task].on_failure;
  if (!ended(member)) return false;
  if (member.phase() == v1::MEMBER_EXITED && !member.started()) {
    begin_stop(fold, job, {v1::END_START_FAILED, v1::START_FAILED, rank, member.message()});
    return true;
  }
  if (!failed(member)) return false;
  if (static_cast<int>(task) != job.info->success_task && rule != v1::ON_FAILURE_STOP) return false;
  if (rule == v1::ON_FAILURE_IGNORE) return false;
  begin_stop(fold, job, {v1::END_FAILED, member.reason(), rank, member.message()});
  return true;
}

// With `success: TASK`, that task's end ends the gang.
bool success_task_ended(const Job& job) {
  if (job.info->success_task < 0) return false;
  const TaskInfo& task = job.info->tasks[job.info->success_task];
  for (uint32_t rank = task.first_rank; rank < task.first_rank + task.members; ++rank) {
    if (!ended(job.state.attempt().members(static_cast<int>(rank)))) return false;
  }
  return true;
}

// PLACED → STARTING → RUNNING, from the members' phases.
void advance(Fold& fold, Job& job) {
  v1::AttemptState& attempt = *job.state.mutable_attempt();
  const auto& members = attempt.members();
  if (job.state.phase() == v1::PLACED && std::any_of(members.begin(), members.end(), [](const auto& m) {
        return m.phase() != v1::MEMBER_PLACED;
      }))
    fold.state.set_phase(job, v1::STARTING);
  if (job.state.phase() == v1::STARTING &&
      std::all_of(members.begin(), members.end(), [](const auto& m) { return m.started(); })) {
    fold.state.set_phase(job, v1::RUNNING);
    attempt.set_running_ms(fold.now_ms());
    attempt.set_running_wall_ms(fold.record.wall_ms());
  }
}

}  // namespace

void begin_stop(Fold& fold, Job& job, const StopCause& cause) {
  v1::JobState& state = job.state;
  v1::AttemptState& attempt = *state.mutable_attempt();
  attempt.set_end(cause.end);
  attempt.set_reason(cause.reason);
  attempt.set_cause_rank(static_cast<uint32_t>(cause.rank + 1));
  attempt.set_message(cause.message);
  int64_t wait_ms = 0;
  state.set_stopping_to(destination(fold, job, cause, &wait_ms));
  if (wait_ms > 0) state.set_not_before_ms(fold.now_ms() + wait_ms);
  fold.state.set_phase(job, v1::STOPPING);
  fold.state.refresh_deadline(job);
  fold.state.touch(job);
  fold.changed(job);
  const auto& members = attempt.members();
  if (std::all_of(members.begin(), members.end(), ended)) conclude(fold, job);
}

void review(Fold& fold, Job& job) {
  fold.state.touch(job);
  fold.changed(job);
  const auto& members = job.state.attempt().members();
  const bool all_ended = std::all_of(members.begin(), members.end(), ended);
  if (job.state.phase() == v1::STOPPING) {
    if (all_ended) conclude(fold, job);
    return;
  }
  for (int rank = 0; rank < members.size(); ++rank) {
    if (stop_for_member(fold, job, rank)) return;
  }
  advance(fold, job);
  if (all_ended || success_task_ended(job)) {
    begin_stop(fold, job, {v1::END_SUCCEEDED, v1::EXIT, -1, ""});
    return;
  }
  fold.state.refresh_deadline(job);
}

void member_lost(Fold& fold, Job& job, uint32_t rank) {
  v1::MemberState& member = *job.state.mutable_attempt()->mutable_members(static_cast<int>(rank));
  if (ended(member)) return;
  member.set_phase(v1::MEMBER_LOST);
  member.set_reason(v1::NODE_LOST);
  member.set_exit_code(kExitUnknown);
  fold.state.touch(job);
  if (job.state.phase() == v1::STOPPING) {
    review(fold, job);
  } else {
    begin_stop(fold, job,
               {v1::END_NODE_LOST, v1::NODE_LOST, static_cast<int>(rank),
                absl::StrCat("node ", member.node(), " was lost")});
  }
}

namespace {

// What one job's end means for the jobs that wait for it; those that must fail are added to `failing`.
void wake_dependents(Fold& fold, const v1::JobState& ended_job,
                     std::vector<std::pair<GangKey, std::string>>* failing) {
  for (uint64_t id : ended_job.dependents()) {
    Job* waiting = fold.state.find({id, 0});
    if (waiting == nullptr) continue;
    bool broken = false;
    auto* waits = waiting->state.mutable_waits();
    for (int i = waits->size() - 1; i >= 0; --i) {
      if (waits->Get(i).job() != ended_job.id()) continue;
      broken |= !waits->Get(i).any() && ended_job.phase() != v1::SUCCEEDED;
      waits->DeleteSubrange(i, 1);
    }
    fold.state.touch(*waiting);
    fold.state.note_event(id);
    if (broken) {
      failing->emplace_back(
          waiting->key(), absl::StrCat("job ", ended_job.id(), " ended ", v1::Phase_Name(ended_job.phase())));
    } else {
      fold.state.refresh_waiting(*waiting);
    }
  }
}

void keep_key_for_a_while(Fold& fold, const Job& job) {
  if (job.state.key().empty() || job.state.element() != 0) return;
  v1::KeyState before;
  before.set_job(job.state.id());
  before.set_spec_digest(job.info->digest.bytes());
  v1::KeyState after = before;
  after.set_expires_ms(fold.now_ms() + kKeysKeptMs);
  fold.state.put_key(owned(job.state.user(), job.state.key()), after, before);
}

void end_one(Fold& fold, Job& job, v1::Phase phase, v1::Reason reason, int exit, const std::string& message) {
  v1::JobState& state = job.state;
  fold.state.set_phase(job, phase);
  state.set_reason(reason);
  state.set_job_exit(exit);
  state.set_message(message);
  state.set_ended_ms(fold.now_ms());
  state.set_ended_wall_ms(fold.record.wall_ms());
  state.clear_waits();
  state.set_revision(state.revision() + 1);
  fold.state.refresh_waiting(job);
  fold.state.refresh_deadline(job);
  fold.state.touch(job);
  fold.changed(job);
  keep_key_for_a_while(fold, job);
  if (state.element() == 0) fold.state.meta.set_jobs_ended(fold.state.meta.jobs_ended() + 1);
}

// An element's end, counted in its array; the array to review, if any.
Job* count_in_array(Fold& fold, const v1::JobState& element) {
  Job* array = fold.state.find({element.id(), 0});
  if (array == nullptr) return nullptr;
  v1::ArrayState& counts = *array->state.mutable_array();
  counts.set_live(counts.live() - 1);
  if (element.phase() == v1::SUCCEEDED) counts.set_succeeded(counts.succeeded() + 1);
  if (element.phase() == v1::CANCELLED) counts.set_cancelled(counts.cancelled() + 1);
  if (element.phase() == v1::FAILED) {
    if (counts.failed() == 0) counts.set_first_failed_exit(element.job_exit());
    counts.set_failed(counts.failed() + 1);
  }
  fold.state.touch(*array);
  fold.state.refresh_waiting(*array);
  return array;
}

}  // namespace

void finish(Fold& fold, Job& job, v1::Phase phase, v1::Reason reason, int exit, const std::string& message) {
  end_one(fold, job, phase, reason, exit, message);
  if (job.state.element() != 0) {
    Job* array = count_in_array(fold, job.state);
    fold.state.retire(job);
    if (array != nullptr) review_array(fold, *array);
    return;
  }
  // A work list, not recursion: a chain of dependencies may be as long as the queue.
  std::vector<std::pair<GangKey, std::string>> failing;
  wake_dependents(fold, job.state, &failing);
  fold.state.retire(job);
  while (!failing.empty()) {
    const auto [key, why] = failing.back();
    failing.pop_back();
    Job* next = fold.state.find(key);
    if (next == nullptr) continue;
    if (next->is_array()) {
      fold.state.uncount(*next);
      next->state.mutable_array()->clear_pending();
      fold.state.count(*next);
    }
    end_one(fold, *next, v1::FAILED, v1::DEPENDENCY, kExitUnknown, why);
    wake_dependents(fold, next->state, &failing);
    fold.state.retire(*next);
  }
}

void review_array(Fold& fold, Job& array) {
  const v1::ArrayState& counts = array.state.array();
  if (terminal(array.state.phase())) return;
  if (counts.live() > 0 || !counts.pending().empty()) {
    fold.state.set_phase(array, counts.live() > 0 ? v1::RUNNING : v1::PENDING);
    return;
  }
  if (counts.failed() > 0) {
    finish(fold, array, v1::FAILED, v1::EXIT, counts.first_failed_exit(),
           absl::StrCat(counts.failed(), " of ", array.info->array_count, " elements failed"));
  } else if (counts.cancelled() > 0) {
    finish(fold, array, v1::CANCELLED, v1::BY_USER, kExitCancelled, "");
  } else {
    finish(fold, array, v1::SUCCEEDED, v1::EXIT, 0, "");
  }
}

}  // namespace muster::queue
