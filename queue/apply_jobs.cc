// What people ask of jobs.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "queue/fold.h"

namespace muster::queue {
namespace {

using absl::StatusCode;

// Finds a live job or element, or says why there is none.
Job* find_live(Fold& fold, uint64_t id, uint32_t element, Outcome* out) {
  if (Job* job = fold.state.find({id, element})) return job;
  const std::string name = job_name(id, element);
  const auto ended = fold.found.jobs.find(id);
  const Job* whole = element == 0 ? nullptr : fold.state.find({id, 0});
  if (whole != nullptr && !whole->is_array()) {
    *out = refuse(StatusCode::kInvalidArgument,
                  absl::StrCat("job ", id, " is no array: it has no element ", element - 1));
  } else if (whole != nullptr) {
    *out = refuse(absl::StrCat(name, " is not waiting or running on its own"));
  } else if (ended != fold.found.jobs.end()) {
    *out = refuse(absl::StrCat("job ", name, " has ended: ", v1::Phase_Name(ended->second.phase())));
  } else {
    *out = refuse(StatusCode::kNotFound, absl::StrCat("no job ", name));
  }
  return nullptr;
}

struct Resolved {
  std::vector<v1::Dependency> unmet;
  Outcome refusal;
  bool broken = false;  // an `ok` dependency has ended otherwise
  std::string why;
};

void resolve(Fold& fold, const v1::Submitted& body, const std::string& reference, bool any, Resolved* out) {
  uint64_t id = 0;
  if (!absl::SimpleAtoi(reference, &id)) {
    const auto named = fold.found.names.find(owned(body.spec().user(), reference));
    id = named == fold.found.names.end() ? 0 : named->second;
  }
  if (fold.state.find({id, 0}) != nullptr) {
    v1::Dependency dependency;
    dependency.set_job(id);
    dependency.set_any(any);
    out->unmet.push_back(dependency);
    return;
  }
  const auto ended = fold.found.jobs.find(id);
  if (ended == fold.found.jobs.end()) {
    out->refusal =
        refuse(StatusCode::kNotFound, absl::StrCat("after.", any ? "any" : "ok", ": there is no job '",
                                                   reference, "' of user '", body.spec().user(), "'"));
  } else if (!any && ended->second.phase() != v1::SUCCEEDED) {
    out->broken = true;
    out->why = absl::StrCat("job ", id, " ended ", v1::Phase_Name(ended->second.phase()));
  }
}

Resolved resolve_all(Fold& fold, const v1::Submitted& body) {
  Resolved out;
  for (const std::string& reference : body.spec().after().ok()) resolve(fold, body, reference, false, &out);
  for (const std::string& reference : body.spec().after().any()) resolve(fold, body, reference, true, &out);
  return out;
}

v1::JobState new_job(Fold& fold, const v1::Submitted& body, uint64_t id) {
  const v1::JobSpec& spec = body.spec();
  v1::JobState state;
  state.set_id(id);
  state.set_revision(1);
  state.set_held(spec.hold());
  state.set_key(body.key());
  state.set_retry_of(body.retry_of());
  state.set_submitted_position(fold.input.position);
  state.set_submitted_ms(fold.now_ms());
  state.set_submitted_wall_ms(fold.record.wall_ms());
  state.set_place_in_line(fold.input.position);
  state.set_name(spec.name());
  state.set_user(spec.user());
  state.set_queue(spec.queue());
  state.set_priority(spec.priority());
  state.set_time_limit_ms(spec.time_limit_ms());
  state.set_expected_ms(spec.expected_ms());
  if (spec.array().count() > 0) {
    v1::IndexRange* all = state.mutable_array()->add_pending();
    all->set_first(0);
    all->set_last(spec.array().count() - 1);
    state.set_array_running(spec.array().running());
  }
  return state;
}

// Cancels what has not become an entity.
void cancel_waiting_elements(Fold& fold, Job& array) {
  v1::ArrayState& counts = *array.state.mutable_array();
  fold.state.uncount(array);
  counts.set_cancelled(counts.cancelled() + static_cast<uint32_t>(waiting_elements(counts)));
  counts.clear_pending();
  fold.state.count(array);
  fold.state.touch(array);
  fold.state.refresh_waiting(array);
}

Outcome cancel_one(Fold& fold, Job& job) {
  const v1::Phase phase = job.state.phase();
  if (phase == v1::PENDING) {
    finish(fold, job, v1::CANCELLED, v1::BY_USER, 103, "");
    return {};
  }
  if (phase != v1::STOPPING) {
    begin_stop(fold, job, {v1::END_CANCELLED, v1::BY_USER, -1, ""});
    return {};
  }
  if (terminal(job.state.stopping_to()))
    return refuse(absl::StrCat("job ", job_name(job.state.id(), job.state.element()),
                               " is ending already: ", v1::Phase_Name(job.state.stopping_to())));
  job.state.set_stopping_to(v1::CANCELLED);  // it was on its way back to the queue
  job.state.mutable_attempt()->set_reason(v1::BY_USER);
  fold.state.touch(job);
  return {};
}

}  // namespace

Outcome apply_submitted(Fold& fold, const v1::Submitted& body) {
  State& state = fold.state;
  const std::string id = owned(body.spec().user(), body.key());
  std::shared_ptr<const SpecInfo> info = state.intern_spec(body.spec());
  Outcome out;
  out.name = body.spec().name();
  if (fold.found.key) {
    out.job = fold.found.key->job();
    out.duplicate = true;
    if (fold.found.key->spec_digest() == info->digest.bytes()) return out;
    return refuse(StatusCode::kAlreadyExists,
                  absl::StrCat("key '", body.key(), "' was used for job ", out.job,
                               " with another spec; use a new key for a new job"));
  }
  Resolved after = resolve_all(fold, body);
  if (!after.refusal.ok()) return after.refusal;
  out.job = state.meta.next_job();
  state.meta.set_next_job(out.job + 1);
  Job& job = state.add(new_job(fold, body, out.job), info);
  job.spec_unsaved = true;
  for (const v1::Dependency& dependency : after.unmet) {
    *job.state.add_waits() = dependency;
    Job* target = state.find({dependency.job(), 0});
    target->state.add_dependents(out.job);
    state.touch(*target);
  }
  v1::KeyState key;
  key.set_job(out.job);
  key.set_spec_digest(info->digest.bytes());
  state.put_key(id, key, std::nullopt);
  const std::string name = owned(body.spec().user(), body.spec().name());
  const auto before = fold.found.names.find(name);
  state.put_name(name, out.job,
                 before == fold.found.names.end() ? std::nullopt : std::optional<uint64_t>(before->second));
  state.touch(job);
  state.note_event(out.job);
  if (after.broken) {
    if (job.is_array()) cancel_waiting_elements(fold, job);
    finish(fold, job, v1::FAILED, v1::DEPENDENCY, 100, after.why);
  } else {
    state.refresh_waiting(job);
  }
  return out;
}

namespace {

// An element that never was an entity becomes one that has ended, so that its end can be seen.
Outcome cancel_waiting_element(Fold& fold, Job& array, uint32_t element) {
  v1::ArrayState& counts = *array.state.mutable_array();
  fold.state.uncount(array);
  const bool waited = take_waiting_element(&counts, element - 1);
  fold.state.count(array);
  if (!waited)
    return refuse(absl::StrCat("element ", job_name(array.state.id(), element),
                               " has ended, or there is none: the array "
                               "has elements 0 to ",
                               array.info->array_count - 1));
  counts.set_live(counts.live() + 1);
  Job& job = add_element(fold, array, element);
  fold.state.touch(array);
  finish(fold, job, v1::CANCELLED, v1::BY_USER, 103, "");
  return {};
}

}  // namespace

Outcome apply_cancel(Fold& fold, const v1::CancelRequested& body) {
  Outcome out;
  fold.state.note_event(body.job());
  Job* array = body.element() == 0 ? nullptr : fold.state.find({body.job(), 0});
  if (array != nullptr && array->is_array() && fold.state.find({body.job(), body.element()}) == nullptr)
    return cancel_waiting_element(fold, *array, body.element());
  Job* job = find_live(fold, body.job(), body.element(), &out);
  if (job == nullptr) return out;
  if (!job->is_array()) return cancel_one(fold, *job);
  cancel_waiting_elements(fold, *job);
  std::vector<uint32_t> live;
  if (const auto it = fold.state.live_elements.find(body.job()); it != fold.state.live_elements.end())
    live.assign(it->second.begin(), it->second.end());
  for (uint32_t element : live) cancel_one(fold, *fold.state.find({body.job(), element}));
  if (Job* left = fold.state.find({body.job(), 0})) review_array(fold, *left);
  return out;
}

Outcome apply_hold(Fold& fold, uint64_t id, uint32_t element, bool held) {
  Outcome out;
  fold.state.note_event(id);
  Job* job = find_live(fold, id, element, &out);
  if (job == nullptr) return out;
  std::vector<Job*> all = {job};
  if (job->is_array()) {
    if (const auto it = fold.state.live_elements.find(id); it != fold.state.live_elements.end()) {
      for (uint32_t live : it->second) all.push_back(fold.state.find({id, live}));
    }
  }
  for (Job* one : all) {
    one->state.set_held(held);
    one->state.set_revision(one->state.revision() + 1);
    fold.state.touch(*one);
    fold.state.refresh_waiting(*one);
  }
  return out;
}

Outcome apply_requeue(Fold& fold, const v1::RequeueRequested& body) {
  Outcome out;
  fold.state.note_event(body.job());
  Job* job = find_live(fold, body.job(), body.element(), &out);
  if (job == nullptr) return out;
  const v1::Phase phase = job->state.phase();
  if (job->is_array())
    return refuse(
        absl::StrCat("job ", body.job(), " is an array; requeue one element, as in ", body.job(), "[0]"));
  if (phase == v1::PENDING || phase == v1::STOPPING)
    return refuse(absl::StrCat("job ", job_name(body.job(), body.element()), " is ", v1::Phase_Name(phase),
                               "; only a gang that has places can be requeued"));
  begin_stop(fold, *job, {v1::END_REQUEUED, v1::REQUEUED, -1, ""});
  return out;
}

namespace {

void update_one(Fold& fold, Job& job, const v1::Updated& body) {
  v1::JobState& state = job.state;
  const bool holds = holds_places(state.phase()) && !job.is_array();
  fold.state.uncount(job);
  if (body.has_priority()) state.set_priority(body.priority());
  if (body.has_time_limit_ms()) state.set_time_limit_ms(body.time_limit_ms());
  if (body.has_expected_ms()) state.set_expected_ms(body.expected_ms());
  if (body.has_array_running()) state.set_array_running(body.array_running());
  if (body.has_queue() && !holds) state.set_queue(body.queue());
  fold.state.count(job);
  if (job.shape->queue != state.queue() || job.shape->priority != state.priority())
    job.shape = shape_with(*job.shape, state.queue(), state.priority());
  state.set_revision(state.revision() + 1);
  fold.state.touch(job);
  fold.state.refresh_waiting(job);
  fold.state.refresh_deadline(job);
}

}  // namespace

Outcome apply_updated(Fold& fold, const v1::Updated& body) {
  Outcome out;
  fold.state.note_event(body.job());
  Job* job = find_live(fold, body.job(), 0, &out);
  if (job == nullptr) return out;
  if (body.has_queue() && holds_places(job->state.phase()))
    return refuse(absl::StrCat("job ", body.job(), " is ", v1::Phase_Name(job->state.phase()),
                               "; only a waiting job can change its queue"));
  if (body.has_array_running() && !job->is_array())
    return refuse(StatusCode::kInvalidArgument, absl::StrCat("job ", body.job(), " is no array"));
  update_one(fold, *job, body);
  if (const auto it = fold.state.live_elements.find(body.job()); it != fold.state.live_elements.end()) {
    for (uint32_t element : it->second) update_one(fold, *fold.state.find({body.job(), element}), body);
  }
  return out;
}

// ---- elements ----

bool take_waiting_element(v1::ArrayState* array, uint32_t index) {
  auto* ranges = array->mutable_pending();
  for (int i = 0; i < ranges->size(); ++i) {
    v1::IndexRange& range = *ranges->Mutable(i);
    if (index < range.first() || index > range.last()) continue;
    if (range.first() == range.last()) {
      ranges->DeleteSubrange(i, 1);
    } else if (index == range.first()) {
      range.set_first(index + 1);
    } else if (index == range.last()) {
      range.set_last(index - 1);
    } else {
      v1::IndexRange after = range;
      after.set_first(index + 1);
      range.set_last(index - 1);
      ranges->Add(std::move(after));
      for (int k = ranges->size() - 1; k > i + 1; --k) ranges->SwapElements(k, k - 1);
    }
    return true;
  }
  return false;
}

Job& add_element(Fold& fold, const Job& array, uint32_t element) {
  const v1::JobState& from = array.state;
  v1::JobState state;
  state.set_id(from.id());
  state.set_element(element);
  state.set_revision(1);
  state.set_held(from.held());
  state.set_submitted_position(from.submitted_position());
  state.set_submitted_ms(from.submitted_ms());
  state.set_submitted_wall_ms(from.submitted_wall_ms());
  state.set_place_in_line(from.place_in_line());
  state.set_name(from.name());
  state.set_user(from.user());
  state.set_queue(from.queue());
  state.set_priority(from.priority());
  state.set_time_limit_ms(from.time_limit_ms());
  state.set_expected_ms(from.expected_ms());
  Job& job = fold.state.add(std::move(state), array.info);
  fold.state.touch(job);
  return job;
}

}  // namespace muster::queue
