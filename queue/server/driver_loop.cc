// The engine's thread: taking inputs, folding, appending, committing, and beginning again when the state or
// the log is not what it was.
#include <algorithm>
#include <exception>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "queue/server/driver.h"
#include "queue/server/store_access.h"
#include "spdlog/spdlog.h"

namespace muster::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr size_t kGroupBytesMax = size_t{4} << 20;
constexpr size_t kGroupRecordsMax = 8'192;
constexpr int kCatchUpFactor = 20;
constexpr int kTimesBegunMax = 3;  // one that keeps finding its state wrong ends instead

int64_t wall_ms() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

int64_t Driver::now_ms() const {
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - started_).count();
}

absl::Status Driver::open_state(bool anew) {
  std::string said;
  {
    std::lock_guard lock(store_mutex_);
    store_.reset();
  }
  auto store = options_.open_store(anew, &said);
  if (!store.ok()) return store.status();
  auto state = load_state(**store);
  if (absl::IsDataLoss(state.status()) && !anew) {
    spdlog::warn("{}; it is set aside and the log folded anew", std::string(state.status().message()));
    store->reset();
    return open_state(true);
  }
  if (!state.ok()) return state.status();
  if (!said.empty()) spdlog::warn("the old state was set aside as {}; the log is folded anew", said);
  if (!state->meta.cell().empty() && state->meta.cell() != options_.engine.cell)
    return absl::FailedPreconditionError(absl::StrCat("the state is of cell '", state->meta.cell(),
                                                      "', the log of '", options_.engine.cell,
                                                      "'; give each cell its own --dir"));
  {
    std::lock_guard lock(store_mutex_);
    store_ = *std::move(store);
  }
  engine_ = std::make_unique<queue::Engine>(options_.engine, *std::move(state));
  // A session is of one engine: another that is made in this process is another writer.
  options_.engine.session = options_.engine.session * 6364136223846793005u + 1442695040888963407u;
  if (options_.engine.session == 0) options_.engine.session = 1;
  options_.engine.nonce_seed ^= options_.engine.session;
  uncommitted_ = 0;
  caught_up_ = false;
  return absl::OkStatus();
}

void Driver::start_reading() {
  LogTail::Events events;
  events.trouble = [this](const std::string& trouble) {
    if (troubles_.set("log read", trouble) && !trouble.empty()) spdlog::warn("{}", trouble);
    update_serving();
  };
  // What is damaged in the log itself is not mended by folding it anew.
  events.ended = [this, begun = times_begun_](absl::Status status) {
    if (absl::IsDataLoss(status)) status = absl::FailedPreconditionError(status.message());
    post([this, begun, status](Turn&) {
      if (begun == times_begun_) failed_ = status;
    });
  };
  inbox_.resume_records();
  tail_ = std::make_unique<LogTail>(*options_.log, options_.engine.cell, engine_->state().meta.position(),
                                    engine_->state().chain, inbox_, std::move(events));
}

void Driver::run() {
  committed_at_ = next_clock_ = steady_clock::now();
  while (!stopping_) {
    absl::Status status = turn();
    if (!status.ok() && !begin_again(status)) {
      go_read_only(std::string(status.message()));
      if (options_.on_fatal) options_.on_fatal(std::string(status.message()));
    }
  }
  inbox_.stop_records();
  tail_.reset();
  Turn last(*this, *engine_, now_ms(), wall_ms());
  for (Task& task : inbox_.take(steady_clock::now()).tasks) task(last);
  fail_all("the server is stopping; ask again with the same key");
  if (absl::Status status = commit(); !status.ok())
    spdlog::error("the last commit failed: {}", std::string(status.message()));
  sinks_.clear();
}

steady_clock::time_point Driver::next_deadline() const {
  if (uncommitted_ == 0) return next_clock_;
  return std::min(next_clock_, next_commit());
}

// While the log is only read, nobody waits for what the store shows: fewer, larger commits write fewer
// entities.
bool Driver::commit_is_full() const {
  return uncommitted_ >= options_.commit_records * (caught_up_ ? 1 : kCatchUpFactor);
}

steady_clock::time_point Driver::next_commit() const {
  return committed_at_ + milliseconds(options_.commit_ms * (caught_up_ ? 1 : kCatchUpFactor));
}

absl::Status Driver::turn() {
  Inbox::Taken taken = inbox_.take(next_deadline());
  Turn turn(*this, *engine_, now_ms(), wall_ms());
  for (Task& task : taken.tasks) task(turn);
  for (RecordBatch& batch : taken.batches) {
    if (absl::Status status = fold(turn, batch); !status.ok()) return status;
  }
  const bool quiet = steady_clock::now() < quiet_until_;
  if (!read_only_ && !quiet) {
    if (steady_clock::now() >= next_clock_) engine_->clock(turn.now_ms, turn.wall_ms, &turn.out);
    engine_->settle(turn.now_ms, caught_up_, &turn.out);
  }
  if (steady_clock::now() >= next_clock_) {
    const int64_t lease_ms = std::max<int64_t>(engine_->state().meta.lease_ms(), 10);
    next_clock_ = steady_clock::now() + milliseconds(std::min<int64_t>(50, lease_ms / 10));
  }
  if (!turn.out.fatal.empty()) return absl::DataLossError(turn.out.fatal);
  dispatch(std::move(turn.out));
  if (!caught_up_seen_ && caught_up_ && joined()) {
    caught_up_seen_ = true;
    update_serving();
  }
  if (uncommitted_ > 0 && steady_clock::now() >= next_commit()) {
    if (absl::Status status = commit(); !status.ok()) return status;
  }
  return std::exchange(failed_, absl::OkStatus());
}

// Whether this server is known to the cell: the fold refuses what others write.
bool Driver::joined() const {
  const auto& servers = engine_->state().meta.servers();
  return std::any_of(servers.begin(), servers.end(), [&](const v1::ServerState& server) {
    return server.session() == engine_->options().session;
  });
}

absl::Status Driver::fold(Turn& turn, RecordBatch& batch) {
  if (read_only_) return absl::OkStatus();
  for (const queue::LogInput& input : batch.inputs) {
    if (marker_ && marker_->poisoned() == input.position) {
      if (absl::Status status = commit(); !status.ok()) return status;
      go_read_only(
          absl::StrCat("the fold failed twice on the record at position ", input.position,
                       "; this server is read-only before it. Start a release that can fold it (and delete "
                       "the file 'folding' in its directory), and send the log's record with the report"));
      return absl::OkStatus();
    }
    if (absl::Status status = fold_one(turn, input); !status.ok()) return status;
  }
  caught_up_ |= batch.caught_up;
  return absl::OkStatus();
}

absl::Status Driver::fold_one(Turn& turn, const queue::LogInput& input) {
  static const v1::Record kNone;  // what can't be decoded still moves time
  if (marker_) marker_->begin(input.position);
  try {
    StoreHistory history(*store_);
    const queue::ReadSet wanted =
        engine_->reads(input.record != nullptr ? *input.record : kNone, input.timestamp_ms);
    const queue::Found found =
        wanted.empty() ? queue::Found{} : queue::fetch(engine_->state(), wanted, history);
    if (!history.status().ok())
      return absl::InternalError(absl::StrCat("the state store can't be read: ", history.status().message()));
    engine_->fold(input, found, &turn.out);
  } catch (const std::exception& error) {
    if (marker_) marker_->note_failure(input.position);
    return absl::InternalError(
        absl::StrCat("the fold failed on the record at position ", input.position, ": ", error.what()));
  }
  if (marker_) marker_->end();
  if (!turn.out.fatal.empty()) return absl::DataLossError(turn.out.fatal);
  if (uncommitted_++ == 0) committed_at_ = steady_clock::now();
  // At a digest's position the engine has flushed by itself: only the store has the values now.
  if (commit_is_full() || engine_->state().flushed_position() == input.position) return commit();
  return absl::OkStatus();
}

absl::Status Driver::commit() {
  if (uncommitted_ == 0) return absl::OkStatus();
  if (!store_) return absl::UnavailableError("the state store could not be opened");
  std::vector<queue::Write> writes = engine_->flush();
  std::vector<uint64_t> jobs;
  if (events_.anyone()) {
    for (const queue::Write& write : writes) {
      if (write.table == queue::Entity::kEvents) jobs.push_back(queue::gang_of_store_key(write.key).job);
    }
  }
  const absl::Status status = write_state(*store_, std::move(writes));
  uncommitted_ = 0;
  committed_at_ = steady_clock::now();
  if (!status.ok())
    return absl::InternalError(absl::StrCat("the state store can't be written: ", status.message()));
  if (!jobs.empty()) events_.committed(jobs);
  return absl::OkStatus();
}

void Driver::dispatch(queue::Output out) {
  if (!out.appends.empty()) append(std::move(out.appends));
  for (queue::Reply& reply : out.replies) answer(reply.request, std::move(reply.outcome));
  for (queue::Order& order : out.orders) {
    const auto it = sinks_.find(order.stream);
    if (it != sinks_.end()) it->second->send(std::move(order.message), order.close);
  }
}

void Driver::append(std::vector<queue::Append> appends) {
  if (recovering_) {
    std::move(appends.begin(), appends.end(), std::back_inserter(held_back_));
    return;
  }
  size_t bytes = 0, begin = 0;
  for (size_t i = 0; i < appends.size(); ++i) {
    bytes += appends[i].value.size() + appends[i].key.size();
    if (i + 1 < appends.size() && i + 1 - begin < kGroupRecordsMax && bytes < kGroupBytesMax) continue;
    append_group({std::make_move_iterator(appends.begin() + static_cast<long>(begin)),
                  std::make_move_iterator(appends.begin() + static_cast<long>(i) + 1)});
    begin = i + 1;
    bytes = 0;
  }
}

void Driver::append_group(std::vector<queue::Append> appends) {
  const uint64_t first = appends.front().sequence, last = appends.back().sequence;
  std::vector<storage::LogEntry> group;
  group.reserve(appends.size());
  for (queue::Append& append : appends)
    group.push_back({std::move(append.key), std::move(append.type), append.format, std::move(append.value)});
  options_.log->append(std::move(group),
                       [this, first, last](absl::Status status) { append_done(first, last, status); });
}

// On the log's thread.
void Driver::append_done(uint64_t first, uint64_t last, const absl::Status& status) {
  if (status.ok()) {
    if (troubles_.set("log append", "")) update_serving();
    return;
  }
  post([this, first, last, status](Turn& turn) {
    const std::string why = absl::StrCat("the log can't be written: ", status.message());
    if (troubles_.set("log append", why)) spdlog::warn("{}", why);
    update_serving();
    quiet_until_ = steady_clock::now() + milliseconds(200);
    engine_->append_failed(first, last, absl::IsUnknown(status), why, &turn.out);
    if (absl::IsUnknown(status)) recover_log();
  });
}

// Recovery waits for the broker, so it has a thread of its own; appends are held back until it is done.
void Driver::recover_log() {
  if (recovering_) return;
  recovering_ = true;
  if (recovery_.joinable()) recovery_.join();
  recovery_ = std::thread([this] {
    absl::Status status = options_.log->recover();
    while (!status.ok() && !stopping_) {
      if (troubles_.set("log append", absl::StrCat("the log is out of reach: ", status.message())))
        update_serving();
      std::this_thread::sleep_for(milliseconds(200));
      status = options_.log->recover();
    }
    post([this](Turn&) {
      recovering_ = false;
      spdlog::info("the log takes appends again");
      append(std::exchange(held_back_, {}));
    });
  });
}

// False: it has been tried often enough.
bool Driver::begin_again(const absl::Status& why) {
  const bool state_is_wrong = absl::IsOutOfRange(why) || absl::IsInternal(why) || absl::IsDataLoss(why);
  spdlog::error("{}", std::string(why.message()));
  if (!state_is_wrong || read_only_ || ++times_begun_ > kTimesBegunMax) return false;
  const bool fold_failed = marker_ && absl::StrContains(why.message(), "the fold failed");
  inbox_.stop_records();
  tail_.reset();
  fail_all(absl::StrCat(why.message(), "; ask again with the same key"));
  for (auto& [stream, sink] : sinks_) {
    v1::ServerMessage refusal;
    refusal.set_refused("the server reads its log anew; try again");
    sink->send(std::move(refusal), true);
  }
  caught_up_seen_ = false;
  update_serving();
  spdlog::warn(fold_failed ? "the state is loaded again" : "the state is set aside and the log folded anew");
  const absl::Status opened = open_state(!fold_failed);
  if (!opened.ok()) {
    spdlog::error("{}", std::string(opened.message()));
    return false;
  }
  start_reading();
  return true;
}

void Driver::go_read_only(const std::string& why) {
  read_only_ = true;
  troubles_.set("fold", why);
  spdlog::error("{}", why);
  update_serving();
  fail_all(why);
}

}  // namespace muster::server
