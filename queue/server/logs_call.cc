#include "queue/server/logs_call.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/server/lookup.h"
#include "queue/validate.h"

namespace muster::server {
namespace {

using std::chrono::milliseconds;

constexpr size_t kBytesMax = size_t{4} << 20;
constexpr milliseconds kLook{200};

}  // namespace

absl::Status LogsCall::run() {
  if (absl::Status found = find_attempt(); !found.ok()) return found;
  for (size_t i = 0; i < sources_.size(); ++i) open(i);
  while (!over_()) {
    std::deque<Arrived> arrived;
    {
      std::unique_lock lock(mutex_);
      some_.wait_for(lock, kLook, [&] { return !arrived_.empty(); });
      arrived.swap(arrived_);
      bytes_ = 0;
    }
    const bool idle = arrived.empty();
    for (Arrived& one : arrived) {
      if (!handle(std::move(one))) break;
    }
    bool all_done = true;
    for (size_t i = 0; i < sources_.size(); ++i) {
      all_done &= sources_[i].done;
      if (!sources_[i].done && sources_[i].request == 0 && (idle || !sources_[i].said)) open(i);
    }
    if (all_done) break;
  }
  cancel_all();
  return absl::OkStatus();
}

// With `follow`, waits for the first attempt.
absl::Status LogsCall::find_attempt() {
  Lookup lookup(driver_);
  auto view = lookup.view(request_.job(), true);
  if (!view.ok()) return view.status();
  const std::string name = job_name(view->state().id(), view->state().element());
  if (view->state().has_array())
    return absl::FailedPreconditionError(
        absl::StrCat("job ", name, " is an array; name an element, as in ", name, "[0]"));
  v1::JobRef ref = request_.job();
  ref.set_id(view->state().id());
  JobEvents::Watcher news(driver_.events(), view->state().id());
  while (!view->state().has_attempt()) {
    if (queue::terminal(view->state().phase()) || !request_.follow())
      return absl::FailedPreconditionError(absl::StrCat("job ", name,
                                                        " has no output: it has not been placed; it is ",
                                                        v1::Phase_Name(view->state().phase())));
    if (over_()) return absl::OkStatus();
    news.wait(kLook);
    view = lookup.view(ref, true);
    if (!view.ok()) return view.status();
  }
  const v1::JobState& state = view->state();
  if (request_.attempt() == 0 || request_.attempt() == state.attempt().number())
    return add_sources(*view, state.attempt());
  for (const v1::AttemptState& past : state.past()) {
    if (past.number() == request_.attempt()) return add_sources(*view, past);
  }
  return absl::NotFoundError(absl::StrCat("job ", name, " has no attempt ", request_.attempt(),
                                          "; its last is ", state.attempt().number()));
}

absl::Status LogsCall::add_sources(const v1::JobView& view, const v1::AttemptState& attempt) {
  const int members = attempt.members_size();
  if (request_.rank() < -1 || request_.rank() >= members)
    return queue::field_error({nullptr, "rank"}, absl::StrCat(request_.rank()),
                              absl::StrCat("must be 0 to ", members - 1, ", or -1 for all"));
  uint32_t rank = 0;
  for (const v1::Task& task : view.spec().tasks()) {
    for (uint32_t i = 0; i < task.replicas() && rank < static_cast<uint32_t>(members); ++i, ++rank) {
      if (request_.rank() >= 0 && static_cast<uint32_t>(request_.rank()) != rank) continue;
      Source source;
      source.rank = rank;
      source.task = task.name();
      source.node = attempt.members(static_cast<int>(rank)).node();
      source.member.set_job(view.state().id());
      source.member.set_element(view.state().element());
      source.member.set_attempt(attempt.number());
      source.member.set_rank(rank);
      *source.member.mutable_fence() = attempt.fence();
      sources_.push_back(std::move(source));
    }
  }
  return absl::OkStatus();
}

bool LogsCall::job_lives() {
  const v1::MemberRef& member = sources_.front().member;
  const auto lives = driver_.call([&](Turn& turn) {
    const queue::Job* job = turn.state().find({member.job(), member.element()});
    return job != nullptr && job->state.attempt().number() == member.attempt();
  });
  return lives && *lives;
}

// Asks the node's agent for the output from the offset on; if there is none here, says so, and with `follow`
// goes on looking while the attempt lives.
void LogsCall::open(size_t index) {
  Source& source = sources_[index];
  v1::ServerMessage message;
  v1::ReadOutput& order = *message.mutable_read_output();
  *order.mutable_member() = source.member;
  order.set_from(source.offset);
  order.set_follow(request_.follow());
  // The taker may outlive the call: it holds on to it only as long as the call does itself.
  const auto taker = [weak = weak_from_this(), index](v1::OutputChunk chunk) {
    const auto self = weak.lock();
    return self != nullptr && self->take(index, std::move(chunk));
  };
  const auto sent = driver_.call([&](Turn& turn) {
    source.stream = turn.engine.stream_of(source.node);
    if (source.stream == 0) return false;
    source.request = router_.open(source.stream, taker);
    order.set_request(source.request);
    return turn.send(source.stream, std::move(message));
  });
  if (sent && *sent) {
    source.said = false;
    return;
  }
  if (source.request != 0) router_.close(source.request);
  source.request = 0;
  const bool wait = sent && request_.follow() && job_lives();
  if (!wait || !source.said)
    note(source,
         absl::StrCat("node ", source.node, " is not connected to this server",
                      wait ? "; waiting for it" : ""),
         !wait);
  source.said = true;
}

bool LogsCall::note(Source& source, const std::string& text, bool end) {
  v1::LogChunk out;
  out.set_rank(source.rank);
  out.set_task(source.task);
  out.set_offset(source.offset);
  out.set_note(text);
  out.set_end(end);
  source.done = end;
  return send_(std::move(out));
}

bool LogsCall::take(size_t source, v1::OutputChunk chunk) {
  std::lock_guard lock(mutex_);
  if (bytes_ > kBytesMax) {
    chunk.clear_data();
    chunk.clear_end();
    chunk.set_error("");
    chunk.set_offset(-1);  // to be asked for again
    arrived_.push_back({source, std::move(chunk)});
    some_.notify_one();
    return false;
  }
  bytes_ += chunk.data().size();
  arrived_.push_back({source, std::move(chunk)});
  some_.notify_one();
  return true;
}

bool LogsCall::handle(Arrived arrived) {
  Source& source = sources_[arrived.source];
  v1::OutputChunk& chunk = arrived.chunk;
  if (source.done || chunk.request() != source.request) return true;
  if (chunk.offset() < 0) {
    source.request = 0;
    return true;
  }
  if (!chunk.error().empty()) {
    source.request = 0;
    const bool wait = request_.follow() && job_lives();
    source.said = wait;
    return note(source, chunk.error(), !wait);
  }
  source.offset = chunk.offset() + static_cast<int64_t>(chunk.data().size());
  source.done = chunk.end();
  v1::LogChunk out;
  out.set_rank(source.rank);
  out.set_task(source.task);
  out.set_offset(chunk.offset());
  out.set_end(chunk.end());
  out.set_data(std::move(*chunk.mutable_data()));
  return send_(std::move(out));
}

void LogsCall::cancel_all() {
  for (Source& source : sources_) {
    if (source.done || source.request == 0) continue;
    router_.close(source.request);
    v1::ServerMessage message;
    message.mutable_read_output()->set_request(source.request);
    *message.mutable_read_output()->mutable_member() = source.member;
    message.mutable_read_output()->set_cancel(true);
    driver_.post([stream = source.stream, message = std::move(message)](Turn& turn) mutable {
      turn.send(stream, std::move(message));
    });
  }
}

}  // namespace muster::server
