#include "tools/sim/world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/replay.h"
#include "queue/server/store_access.h"

namespace muster::sim {
namespace {

constexpr size_t kViolationsKept = 1'000;

}  // namespace

World::World(const Scenario& scenario)
    : scenario_(scenario),
      agents_(*this),
      store_(storage::make_memory_state_store()),
      lease_ms_(scenario.node_lost_ms) {
  start_server();
}

void World::start_server() {
  queue::EngineOptions options;
  options.cell = "sim";
  options.server = "sim";
  options.session = next_session_;
  options.nonce_seed = next_session_++;
  options.exclusive_log = true;
  // Cell time follows the log's, but by at most a lease for each record: the lease is long, and no gap is
  // longer. Each instant has its Tick, so that what falls due is decided then.
  options.lease_ms = lease_ms_;
  options.tick_ms = 1;
  auto state = server::load_state(*store_);
  if (!state.ok()) {
    bad_ = state.status();
    return;
  }
  folded_ = static_cast<size_t>(state->meta.position() + 1);
  engine_ = std::make_unique<queue::Engine>(options, *std::move(state));
}

// Killed: what was not written to the store is folded again from the log; streams are gone; clients ask
// again.
void World::restart_server() {
  kill_ = false;
  rounds_before_ += engine_->rounds();
  orders_.clear();
  node_of_stream_.clear();
  start_server();
  fold_all();
  queue::Output out;
  engine_->settle(now_ms_, true, &out);
  take(std::move(out));
  fold_all();
  agents_.reconnect_all();
  std::map<uint64_t, Asked> again = std::exchange(asked_, {});
  for (auto& [request, asked] : again) ask(std::move(asked.body), std::move(asked.job));
}

// ---- time ----

void World::at(int64_t ms, std::function<void()> act) {
  timers_.emplace(std::pair{std::max(ms, now_ms_), next_timer_++}, std::move(act));
}

bool World::act_now() {
  bool acted = false;
  while (!timers_.empty() && timers_.begin()->first.first <= now_ms_) {
    const auto act = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    act();
    acted = true;
    if (kill_) restart_server();
  }
  return acted;
}

// When the engine has something to decide by itself; 0: never.
int64_t World::due_ms() const {
  const int64_t wake = engine_->wake_at_ms();
  return wake == 0 ? 0 : kOrigin - kCellOrigin + wake;
}

// The next Tick that cell time needs to follow the world's: half a lease leaves room for an append's delay.
int64_t World::tick_ms() const {
  return log_.empty() ? now_ms_ : log_.back().timestamp_ms + lease_ms_ / 2;
}

bool World::is_due() const {
  const int64_t due = due_ms();
  return (due != 0 && due <= now_ms_) || tick_ms() <= now_ms_;
}

int64_t World::next_ms() const {
  int64_t next = 0;
  if (!timers_.empty()) next = timers_.begin()->first.first;
  if (int64_t due = due_ms(); due != 0) {
    due = std::max(now_ms_ + 1, due);
    if (next == 0 || due < next) next = due;
  }
  if (next == 0) return 0;
  return std::min(next, std::max(now_ms_ + 1, tick_ms()));
}

absl::Status World::run() {
  if (!bad_.ok()) return bad_;
  queue::Output out;
  engine_->settle(now_ms_, true, &out);
  take(std::move(out));
  rest();
  now_ms_ = kOrigin;
  for (const ScenarioNode& node : scenario_.nodes) agents_.add(node);
  schedule();
  rest();
  while (bad_.ok()) {
    const int64_t next = next_ms();
    if (next == 0) break;
    if (scenario_.until_ms > 0 && next > kOrigin + scenario_.until_ms) {
      now_ms_ = kOrigin + scenario_.until_ms;
      break;
    }
    now_ms_ = next;
    rest();
  }
  check_replay();
  return bad_;
}

// At one instant: agents, clients and the log come to rest first, then the engine decides, as long as there
// is anything to decide. A Tick alone is nothing: where appends take time, each would be answered by another.
void World::rest() {
  for (bool decided = false;;) {
    if (act_now() || fold_all()) {
      decided = false;
      continue;
    }
    if (decided || !(stirred_ || is_due())) break;
    stirred_ = false;
    queue::Output out;
    engine_->clock(now_ms_, now_ms_, &out);
    take(std::move(out));
    decided = true;
  }
  observe();
}

// ---- the log ----

void World::take(queue::Output out) {
  if (!out.fatal.empty()) violation(out.fatal);
  const auto append = [this](std::vector<queue::Append> appends) {
    for (queue::Append& entry : appends)
      log_.push_back(
          {static_cast<int64_t>(log_.size()), now_ms_, std::move(entry.key), std::move(entry.value)});
  };
  if (scenario_.append_delay_ms == 0) {
    append(std::move(out.appends));
  } else if (!out.appends.empty()) {
    at(now_ms_ + scenario_.append_delay_ms,
       [append, appends = std::move(out.appends)]() mutable { append(std::move(appends)); });
  }
  for (const queue::Reply& reply : out.replies) answered(reply.request, reply.outcome);
  for (queue::Order& order : out.orders) {
    if (scenario_.agent_delay_ms == 0) {
      orders_.push_back(std::move(order));
    } else {
      at(now_ms_ + scenario_.agent_delay_ms, [this, order = std::move(order)] { deliver(order); });
    }
  }
}

void World::deliver(const queue::Order& order) {
  const auto node = node_of_stream_.find(order.stream);
  if (node == node_of_stream_.end()) return;
  const std::string name = node->second;
  if (order.close) node_of_stream_.erase(node);
  agents_.order(name, order.stream, order.message);
}

void World::fold_one() {
  const storage::LogRecord& entry = log_[folded_];
  queue::LogInput input{entry.position, entry.timestamp_ms, {}, nullptr};
  input.chain = chain_next(engine_->state().chain, input.position, entry.key, entry.value);
  if (decode_record(entry.value, "sim", &record_) == Decoded::kOk) input.record = &record_;
  ++folded_;
  queue::Found found;
  if (input.record != nullptr) {
    server::StoreHistory history(*store_);
    const queue::ReadSet wanted = engine_->reads(record_, entry.timestamp_ms);
    if (!wanted.empty()) found = queue::fetch(engine_->state(), wanted, history);
  }
  stirred_ |= !record_.has_tick();
  queue::Output out;
  engine_->fold(input, found, &out);
  take(std::move(out));
  ++steps_;
}

bool World::fold_all() {
  bool some = false;
  while (folded_ < log_.size() || !orders_.empty()) {
    some = true;
    if (folded_ < log_.size()) {
      fold_one();
      if (kill_at_step_ != 0 && steps_ >= kill_at_step_) {
        kill_at_step_ = 0;
        kill_ = true;
        return true;
      }
    } else {
      const queue::Order order = std::move(orders_.front());
      orders_.pop_front();
      deliver(order);
    }
  }
  return some;
}

void World::check_replay() {
  queue::Replayer replayer;
  for (size_t i = 0; i < folded_; ++i) {
    const storage::LogRecord& entry = log_[i];
    const absl::Status added = replayer.add(entry.position, entry.timestamp_ms, entry.key, entry.value);
    if (!added.ok()) return violation(std::string(added.message()));
  }
  if (const std::string replayed = replayer.digest_hex(); replayed != digest())
    violation(absl::StrCat("the state's digest is ", digest(), ", a replay's ", replayed));
}

// ---- what is seen of jobs ----

void World::observe() {
  std::vector<queue::Write> writes = engine_->flush();
  for (const queue::Write& write : writes) {
    const bool job = write.table == queue::Entity::kLive || write.table == queue::Entity::kEnded;
    if (job && write.value) see(*write.value);
  }
  if (absl::Status bad = server::write_state(*store_, std::move(writes)); !bad.ok()) bad_ = bad;
}

void World::see(const std::string& bytes) {
  v1::JobState state;
  state.ParseFromString(bytes);
  Seen& seen = seen_[{state.id(), state.element()}];
  if (queue::terminal(seen.state.phase()) && seen.state.phase() != state.phase())
    violation(absl::StrCat("job ", job_name(state.id(), state.element()), " was ",
                           v1::Phase_Name(seen.state.phase()), " and is ", v1::Phase_Name(state.phase())));
  for (const v1::AttemptState& attempt : state.past()) seen.attempts[attempt.number()] = attempt;
  if (state.has_attempt()) seen.attempts[state.attempt().number()] = state.attempt();
  seen.state = std::move(state);
}

const std::string* World::refusal_of(const std::string& job) const {
  const auto it = refused_.find(job);
  return it == refused_.end() ? nullptr : &it->second;
}

const ScenarioJob* World::job_of(uint64_t job) const {
  const auto it = jobs_.find(job);
  return it == jobs_.end() ? nullptr : it->second;
}

void World::violation(std::string what) {
  if (violations_.size() < kViolationsKept)
    violations_.push_back(absl::StrCat("position ", folded_ == 0 ? 0 : folded_ - 1, ": ", what));
}

// ---- agents' streams ----

void World::to_server(uint64_t stream, v1::AgentMessage message) {
  const auto arrive = [this, stream](v1::AgentMessage arrived) {
    if (!node_of_stream_.contains(stream)) return;
    queue::Output out;
    engine_->agent_message(stream, std::move(arrived), now_ms_, now_ms_, &out);
    take(std::move(out));
  };
  if (scenario_.agent_delay_ms == 0) return arrive(std::move(message));
  at(now_ms_ + scenario_.agent_delay_ms,
     [arrive, message = std::move(message)]() mutable { arrive(std::move(message)); });
}

uint64_t World::open_stream(const std::string& node) {
  node_of_stream_[next_stream_] = node;
  return next_stream_++;
}

void World::stream_gone(uint64_t stream) {
  if (node_of_stream_.erase(stream) == 0) return;
  queue::Output out;
  engine_->agent_gone(stream, now_ms_, &out);
  take(std::move(out));
}

}  // namespace muster::sim
