#include "queue/engine.h"

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/engine_impl.h"

namespace muster::queue {

Engine::Impl::Impl(EngineOptions options, State state)
    : options(std::move(options)), state(std::move(state)), nonce_state(this->options.nonce_seed) {}

Engine::Engine(EngineOptions options, State state)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(state))) {}
Engine::~Engine() = default;

const State& Engine::state() const {
  return impl_->state;
}
bool Engine::leader() const {
  return impl_->leads();
}
uint64_t Engine::rounds() const {
  return impl_->rounds;
}
bool Engine::caught_up() const {
  return impl_->caught_up;
}
const EngineOptions& Engine::options() const {
  return impl_->options;
}

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014); never 0.
uint64_t Engine::Impl::random() {
  uint64_t z = (nonce_state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  return z == 0 ? 1 : z;
}

// Completes the envelope.
uint64_t Engine::Impl::append(v1::Record record, Output* out) {
  const uint64_t sequence = next_sequence++;
  record.set_cell(options.cell);
  record.set_type(std::string(record_type(record)));
  record.set_format(kFormat);
  record.mutable_writer()->set_session(options.session);
  record.mutable_writer()->set_sequence(sequence);
  if (!record.has_actor()) {
    record.mutable_actor()->set_principal("server");
    record.mutable_actor()->set_authenticated_by("server");
  }
  record.set_wall_ms(wall_ms);
  Append entry;
  entry.sequence = sequence;
  entry.key = record_key(record);
  entry.type = record.type();
  entry.format = kFormat;
  record.SerializeToString(&entry.value);
  out->appends.push_back(std::move(entry));
  return sequence;
}

ReadSet Engine::reads(const v1::Record& record, int64_t timestamp_ms) const {
  return queue::reads(impl_->state, record, timestamp_ms);
}

void Engine::fold(const LogInput& input, const Found& found, Output* out) {
  Impl& e = *impl_;
  Effects effects;
  const Outcome outcome = apply(e.state, input, found, &effects);
  if (outcome.code == absl::StatusCode::kDataLoss) out->fatal = outcome.message;
  if (input.record != nullptr) {
    const v1::Record& record = *input.record;
    if (record.writer().session() == e.state.meta.owner()) e.heard_ms = e.now_ms;
    if (record.has_tick() && outcome.ok()) e.tick_heard_ms = e.now_ms;
    if (record.has_session_opened() && outcome.ok()) e.session_folded(record.session_opened(), out);
    if (record.has_digest_recorded()) e.compare_digest(record.digest_recorded(), out);
    if (record.writer().session() == e.options.session)
      e.folded_own(record.writer().sequence(), input, outcome, out);
  }
  e.orders_for(effects, out);
  e.keep_digest(input, out);
}

void Engine::Impl::folded_own(uint64_t sequence, const LogInput& input, const Outcome& outcome, Output* out) {
  if (const auto it = request_of.find(sequence); it != request_of.end()) {
    out->replies.push_back({it->second, outcome});
    sequence_of.erase(it->second);
    request_of.erase(it);
  }
  if (sequence == claim_sequence) {
    claim_sequence = 0;
    if (outcome.ok()) must_claim = false;
  }
  if (sequence == join_sequence) join_sequence = 0;
  if (sequence == tick_sequence) tick_sequence = 0;
  if (sequence == beat_sequence) beat_sequence = 0;
  if (round.erase(sequence) > 0 && !outcome.ok()) {
    // Normal after something came in between; if not, it is a defect: never a busy loop.
    ++defects;
    plan_not_before_ms = now_ms + 100;
  }
  if (const auto it = due.find(sequence); it != due.end()) {
    due_now.erase(it->second);
    due.erase(it);
  }
  if (const auto it = report_stream.find(sequence); it != report_stream.end()) {
    const auto stream = streams.find(it->second);
    if (stream != streams.end() && stream->second.open) {
      v1::ServerMessage message;
      message.set_acknowledged(state.nodes.at(stream->second.node).state.last_sequence());
      out->orders.push_back({it->second, std::move(message)});
    }
    report_stream.erase(it);
  }
}

void Engine::Impl::keep_digest(const LogInput& input, Output* out) {
  if (input.position == 0 || input.position % kDigestEvery != 0) return;
  for (Write& write : state.flush()) early_writes.push_back(std::move(write));
  digests[input.position] = state.digest();
  if (digests.size() > 16) digests.erase(digests.begin());
  early_writes.push_back({Entity::kDigests, position_key(input.position), state.digest().bytes()});
  if (!leads()) return;
  v1::Record record;
  record.set_term(state.meta.term());
  record.mutable_digest_recorded()->set_position(input.position);
  record.mutable_digest_recorded()->set_digest(state.digest().bytes());
  append(std::move(record), out);
}

void Engine::Impl::compare_digest(const v1::DigestRecorded& body, Output* out) {
  const auto own = digests.find(body.position());
  if (own == digests.end() || own->second.bytes() == body.digest()) return;
  out->fatal = absl::StrCat("this server's state differs from the leader's at position ", body.position(),
                            ": ", own->second.hex(), " here, ", StateDigest::from_bytes(body.digest()).hex(),
                            " there; set the state directory aside and let it fold the log anew");
}

std::vector<Write> Engine::flush() {
  std::vector<Write> out = std::move(impl_->early_writes);
  impl_->early_writes.clear();
  std::vector<Write> rest = impl_->state.flush();
  if (out.empty()) return rest;
  for (Write& write : rest) out.push_back(std::move(write));
  return out;
}

void Engine::append_failed(uint64_t first, uint64_t last, bool unknown, const std::string& why, Output* out) {
  Impl& e = *impl_;
  Outcome outcome;
  outcome.code = absl::StatusCode::kUnavailable;
  outcome.message =
      absl::StrCat(why, unknown ? "; it may or may not have been taken: ask again with the same key"
                                : "; nothing was taken: ask again");
  for (uint64_t sequence = first; sequence <= last; ++sequence) {
    if (const auto it = e.request_of.find(sequence); it != e.request_of.end()) {
      out->replies.push_back({it->second, outcome});
      e.sequence_of.erase(it->second);
      e.request_of.erase(it);
    }
    // The agent keeps what was not acknowledged; a new session sends it again.
    if (const auto it = e.report_stream.find(sequence); it != e.report_stream.end()) {
      const uint64_t stream = it->second;
      e.report_stream.erase(it);
      e.refuse_stream(stream, absl::StrCat("reports can't be taken now: ", why), out);
    }
    e.round.erase(sequence);
    if (const auto it = e.due.find(sequence); it != e.due.end()) {
      e.due_now.erase(it->second);
      e.due.erase(it);
    }
    if (sequence == e.claim_sequence) e.claim_sequence = 0;
    if (sequence == e.join_sequence) e.join_sequence = 0;
    if (sequence == e.tick_sequence) e.tick_sequence = 0;
    if (sequence == e.beat_sequence) e.beat_sequence = 0;
  }
  std::vector<uint64_t> waiting;
  for (const auto& [number, stream] : e.streams) {
    if (!stream.open) waiting.push_back(number);
  }
  for (uint64_t stream : waiting) e.refuse_stream(stream, "the log is out of reach; try again", out);
  e.opening = false;
  e.plan_not_before_ms = e.now_ms + 200;
  if (e.state.meta.owner() == e.options.session && unknown) e.must_claim = true;
}

void Engine::request(uint64_t request, v1::Record body, int64_t wall_ms, Output* out) {
  Impl& e = *impl_;
  Outcome refused;
  if (!e.caught_up) {
    refused.code = absl::StatusCode::kUnavailable;
    refused.message = "the server is still reading the log; ask again";
  } else if (body.has_submitted() && e.request_of.size() >= e.options.unanswered_max) {
    refused.code = absl::StatusCode::kResourceExhausted;
    refused.message = absl::StrCat(e.request_of.size(),
                                   " submissions are unanswered, which is as many as this server "
                                   "takes; retry after 200 ms");
  } else if (body.has_submitted() && e.state.jobs.size() >= e.options.live_jobs_max) {
    refused.code = absl::StatusCode::kResourceExhausted;
    refused.message = absl::StrCat(e.state.jobs.size(),
                                   " jobs are waiting or running, which is as many as this cell "
                                   "takes; retry after 5000 ms");
  }
  if (!refused.ok()) {
    out->replies.push_back({request, std::move(refused)});
    return;
  }
  e.wall_ms = wall_ms;
  const uint64_t sequence = e.append(std::move(body), out);
  e.request_of[sequence] = request;
  e.sequence_of[request] = sequence;
}

void Engine::forget_request(uint64_t request) {
  const auto it = impl_->sequence_of.find(request);
  if (it == impl_->sequence_of.end()) return;
  impl_->request_of.erase(it->second);
  impl_->sequence_of.erase(it);
}

void Engine::settle(int64_t now_ms, bool caught_up, Output* out) {
  Impl& e = *impl_;
  e.now_ms = now_ms;
  if (caught_up && !e.caught_up) {
    e.caught_up = true;
    e.tick_heard_ms = now_ms;
    e.heard_ms = now_ms;  // a lease from here on, before another's term is claimed
  }
  if (e.caught_up) e.lead(out);
}

void Engine::clock(int64_t now_ms, int64_t wall_ms, Output* out) {
  impl_->wall_ms = wall_ms;
  settle(now_ms, false, out);
}

scheduler::Explanation Engine::explain(const GangKey& key) const {
  const State& state = impl_->state;
  const Job* job = state.find(key);
  if (job == nullptr) return {};
  const auto copies =
      static_cast<uint32_t>(std::max<int64_t>(1, job->is_array() ? waiting_elements(job->state.array()) : 1));
  return state.planner.explain(
      {key, job->shape, job->state.place_in_line(), job->state.not_before_ms(), copies}, state.cluster,
      state.usage, state.meta.cell_ms());
}

}  // namespace muster::queue
