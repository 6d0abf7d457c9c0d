#include "queue/server/driver.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::server {
namespace {

constexpr int kBatchBits = 10;  // a batch has at most 1,024 requests
constexpr size_t kBatchMax = size_t{1} << kBatchBits;

queue::Outcome unavailable(const std::string& why) {
  queue::Outcome out;
  out.code = absl::StatusCode::kUnavailable;
  out.message = why;
  return out;
}

}  // namespace

void Turn::commit() {
  if (absl::Status status = driver.commit(); !status.ok() && driver.failed_.ok()) driver.failed_ = status;
}

bool Turn::send(uint64_t stream, v1::ServerMessage message) {
  const auto it = driver.sinks_.find(stream);
  if (it == driver.sinks_.end()) return false;
  it->second->send(std::move(message), false);
  return true;
}

Driver::Driver(DriverOptions options)
    : options_(std::move(options)), started_(std::chrono::steady_clock::now()) {}

absl::Status Driver::begin(const std::string& address) {
  options_.engine.address = address;
  if (!options_.directory.empty()) {
    auto marker = FoldMarker::open(options_.directory);
    if (!marker.ok()) return marker.status();
    marker_ = *std::move(marker);
  }
  if (absl::Status opened = open_state(false); !opened.ok()) return opened;
  inbox_.open();
  start_reading();
  thread_ = std::thread([this] { run(); });
  return absl::OkStatus();
}

Driver::~Driver() {
  stop();
  options_.log.reset();  // its callbacks use what comes after it
}

void Driver::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  inbox_.close();
  thread_.join();
  if (recovery_.joinable()) recovery_.join();
}

std::shared_ptr<storage::StateStore> Driver::store() const {
  std::lock_guard lock(store_mutex_);
  return store_;
}

absl::Status Driver::submit(std::vector<v1::Record> bodies, size_t bytes, Done done) {
  const size_t count = bodies.size();
  if (count > kBatchMax)
    return absl::InvalidArgumentError(absl::StrCat(count, " records in one batch; at most ", kBatchMax));
  const uint64_t others = unanswered_.fetch_add(count);
  const uint64_t other_bytes = unanswered_bytes_.fetch_add(bytes);
  const bool full = others + count > options_.engine.unanswered_max ||
                    (others > 0 && other_bytes + bytes > options_.unanswered_bytes_max);
  if (full) {
    unanswered_ -= count;
    unanswered_bytes_ -= bytes;
    return absl::ResourceExhaustedError(
        absl::StrCat(others, " submissions are unanswered, with ", other_bytes,
                     " bytes, and this server takes no more now; retry after 200 ms"));
  }
  Pending pending;
  pending.bytes = bytes;
  pending.submissions = true;
  pending.done = std::move(done);
  const bool posted =
      post([this, bodies = std::move(bodies), pending = std::move(pending)](Turn& turn) mutable {
        take_request(turn, std::move(bodies), std::move(pending));
      });
  if (posted) return absl::OkStatus();
  unanswered_ -= count;
  unanswered_bytes_ -= bytes;
  return absl::UnavailableError("the server is starting or stopping; ask again with the same key");
}

absl::Status Driver::change(v1::Record body, Done done) {
  if (changes_.fetch_add(1) >= options_.changes_max) {
    --changes_;
    return absl::ResourceExhaustedError(
        absl::StrCat(options_.changes_max, " changes are unanswered; retry after 200 ms"));
  }
  Pending pending;
  pending.done = std::move(done);
  std::vector<v1::Record> bodies;
  bodies.push_back(std::move(body));
  const bool posted =
      post([this, bodies = std::move(bodies), pending = std::move(pending)](Turn& turn) mutable {
        take_request(turn, std::move(bodies), std::move(pending));
      });
  if (posted) return absl::OkStatus();
  --changes_;
  return absl::UnavailableError("the server is starting or stopping; ask again");
}

void Driver::take_request(Turn& turn, std::vector<v1::Record> bodies, Pending pending) {
  pending.missing = bodies.size();
  pending.outcomes.resize(bodies.size());
  if (read_only_ || stopping_ || !caught_up_seen_) {
    std::fill(pending.outcomes.begin(), pending.outcomes.end(),
              unavailable(read_only_  ? troubles_.text()
                          : stopping_ ? "the server is stopping; ask again with the same key"
                                      : "the server is still reading the log; ask again"));
    finish(std::move(pending));
    return;
  }
  const uint64_t batch = next_batch_++;
  pending_[batch] = std::move(pending);
  for (size_t i = 0; i < bodies.size(); ++i)
    turn.engine.request(batch << kBatchBits | i, std::move(bodies[i]), turn.wall_ms, &turn.out);
}

void Driver::answer(uint64_t request, queue::Outcome outcome) {
  const auto it = pending_.find(request >> kBatchBits);
  if (it == pending_.end()) return;
  it->second.outcomes[request & (kBatchMax - 1)] = std::move(outcome);
  if (--it->second.missing > 0) return;
  Pending pending = std::move(it->second);
  pending_.erase(it);
  finish(std::move(pending));
}

void Driver::finish(Pending pending) {
  if (pending.submissions) {
    unanswered_ -= pending.outcomes.size();
    unanswered_bytes_ -= pending.bytes;
  } else {
    --changes_;
  }
  pending.done(std::move(pending.outcomes));
}

void Driver::fail_all(const std::string& why) {
  auto all = std::move(pending_);
  pending_.clear();
  for (auto& [batch, pending] : all) {
    for (queue::Outcome& outcome : pending.outcomes) {
      if (outcome.position == 0 && outcome.ok()) outcome = unavailable(why);
    }
    finish(std::move(pending));
  }
}

void Driver::update_serving() {
  const bool serving = caught_up_seen_ && troubles_.text().empty();
  if (serving_.exchange(serving) != serving && options_.on_serving) options_.on_serving(serving);
}

uint64_t Driver::open_stream(std::shared_ptr<OrderSink> sink) {
  const uint64_t stream = next_stream_++;
  post([this, stream, sink = std::move(sink)](Turn&) mutable { sinks_[stream] = std::move(sink); });
  return stream;
}

bool Driver::agent_message(uint64_t stream, v1::AgentMessage message, absl::AnyInvocable<void()> taken) {
  return post([this, stream, message = std::move(message), taken = std::move(taken)](Turn& turn) mutable {
    // A session that came before the server has joined its cell would be refused by the fold.
    if (read_only_ || (message.has_hello() && !caught_up_seen_)) {
      v1::ServerMessage refusal;
      refusal.set_refused(read_only_ ? troubles_.text() : "the server is starting; try again");
      turn.out.orders.push_back({stream, std::move(refusal), true});
    } else {
      turn.engine.agent_message(stream, std::move(message), turn.now_ms, turn.wall_ms, &turn.out);
    }
    taken();
  });
}

void Driver::close_stream(uint64_t stream) {
  post([this, stream](Turn& turn) {
    sinks_.erase(stream);
    if (!read_only_) turn.engine.agent_gone(stream, turn.now_ms, &turn.out);
  });
}

}  // namespace muster::server
