// The driver: pumps log ↔ engine ↔ store, and does all the I/O that the engine leaves as values. One for a
// server.
//
//   log ──▶ LogTail (decodes) ──▶ Inbox ──▶ engine's thread: fold, settle ──▶ appends, replies, orders,
//   commits
//                services, streams ──▶ Inbox ─┘
//
// The engine's thread alone touches the engine and the agents' streams; everything else comes to it as a
// Task. In each turn it takes all that is at hand, folds, lets the engine decide, and appends what came out
// as one group. Changed entities are committed to the store every few milliseconds or thousand records, never
// per record.
//
// Replies are given on the engine's thread and must not block. Limits: submissions that are unanswered (by
// count and by bytes) are refused with RESOURCE_EXHAUSTED; cancels and other changes have room of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "queue/engine.h"
#include "queue/server/fold_marker.h"
#include "queue/server/inbox.h"
#include "queue/server/job_events.h"
#include "queue/server/log_tail.h"
#include "queue/server/troubles.h"
#include "storage/log.h"
#include "storage/state_store.h"

namespace muster::server {

struct DriverOptions {
  queue::EngineOptions engine;
  std::unique_ptr<storage::Log> log;
  // Opens the state store; `anew`: sets what is there aside first. `*said` names what was set aside.
  std::function<absl::StatusOr<std::shared_ptr<storage::StateStore>>(bool anew, std::string* said)>
      open_store;
  std::string directory;  // where the fold's mark is kept; empty: nowhere
  int64_t commit_ms = 5;
  size_t commit_records = 2'000;
  size_t unanswered_bytes_max = size_t{32} << 20;
  uint64_t changes_max = 10'000;                     // cancels, holds, … in flight
  std::function<void(bool serving)> on_serving;      // for health; any thread
  std::function<void(const std::string&)> on_fatal;  // the server must end: what happened and what to do
};

// An agent's stream, as the driver sees it. send() is called on the engine's thread and must not block.
class OrderSink {
 public:
  virtual ~OrderSink() = default;
  virtual void send(v1::ServerMessage message, bool close) = 0;
};

class Driver;

// What a task works with, on the engine's thread.
class Turn {
 public:
  Turn(Driver& driver, queue::Engine& engine, int64_t now_ms, int64_t wall_ms)
      : driver(driver), engine(engine), now_ms(now_ms), wall_ms(wall_ms) {}
  Driver& driver;
  queue::Engine& engine;
  const int64_t now_ms, wall_ms;
  queue::Output out;

  const queue::State& state() const { return engine.state(); }
  // Commits what was folded, so that the store shows it.
  void commit();
  // To an agent's stream, outside the engine's orders (output is not the engine's concern). False: it has
  // gone.
  bool send(uint64_t stream, v1::ServerMessage message);
};

class Driver {
 public:
  explicit Driver(DriverOptions options);
  ~Driver();
  // Opens the store, loads the state, and starts the threads; until then everything is refused. `address` is
  // what clients and agents dial. Records are read from then on; serving() says when the log's end was
  // reached.
  absl::Status begin(const std::string& address);
  // Commits and ends the threads; what is unanswered gets UNAVAILABLE. Streams must have been told before.
  void stop();

  // Records to be appended, folded and answered together; bodies without an envelope (engine.h).
  // RESOURCE_EXHAUSTED or UNAVAILABLE at once, or `done` later, once, with an outcome for each.
  using Done = absl::AnyInvocable<void(std::vector<queue::Outcome>)>;
  absl::Status submit(std::vector<v1::Record> bodies, size_t bytes, Done done);
  absl::Status change(v1::Record body, Done done);

  // Runs a task on the engine's thread. False: the driver has not begun, or has stopped.
  bool post(Task task) { return inbox_.post(std::move(task)); }
  // The same, and waits for what it returns; never from the engine's thread. Nothing: as above.
  template <typename F>
  auto call(F f) -> std::optional<decltype(f(std::declval<Turn&>()))> {
    using Result = decltype(f(std::declval<Turn&>()));
    std::promise<Result> promise;
    std::future<Result> future = promise.get_future();
    if (!post([&promise, &f](Turn& turn) { promise.set_value(f(turn)); })) return std::nullopt;
    return future.get();
  }

  // Agents' streams. The sink is kept until close_stream().
  uint64_t open_stream(std::shared_ptr<OrderSink> sink);
  // `taken` is called when the engine has it. False: the driver has not begun, or has stopped.
  bool agent_message(uint64_t stream, v1::AgentMessage message, absl::AnyInvocable<void()> taken);
  void close_stream(uint64_t stream);

  std::shared_ptr<storage::StateStore> store() const;
  storage::Log& log() { return *options_.log; }
  JobEvents& events() { return events_; }
  Troubles& troubles() { return troubles_; }
  const DriverOptions& options() const { return options_; }
  bool serving() const { return serving_; }           // caught up, and nothing is wrong
  bool caught_up() const { return caught_up_seen_; }  // the log's end was reached once

 private:
  friend class Turn;
  struct Pending {
    std::vector<queue::Outcome> outcomes;
    size_t missing = 0;
    size_t bytes = 0;
    bool submissions = false;
    Done done;
  };

  // driver.cc
  void take_request(Turn& turn, std::vector<v1::Record> bodies, Pending pending);
  void answer(uint64_t request, queue::Outcome outcome);
  void finish(Pending pending);
  void fail_all(const std::string& why);
  void update_serving();

  // driver_loop.cc: the engine's thread
  absl::Status open_state(bool anew);
  void start_reading();
  void run();
  absl::Status turn();
  bool joined() const;
  absl::Status fold(Turn& turn, RecordBatch& batch);
  absl::Status fold_one(Turn& turn, const queue::LogInput& input);
  absl::Status commit();
  void dispatch(queue::Output out);
  void append(std::vector<queue::Append> appends);
  void append_group(std::vector<queue::Append> appends);
  void append_done(uint64_t first, uint64_t last, const absl::Status& status);
  void recover_log();
  bool begin_again(const absl::Status& why);
  void go_read_only(const std::string& why);
  bool commit_is_full() const;
  std::chrono::steady_clock::time_point next_commit() const;
  std::chrono::steady_clock::time_point next_deadline() const;
  int64_t now_ms() const;

  DriverOptions options_;
  Inbox inbox_;
  JobEvents events_;
  Troubles troubles_;
  std::unique_ptr<FoldMarker> marker_;

  // The engine's thread only, once it runs.
  std::unique_ptr<queue::Engine> engine_;
  std::unique_ptr<LogTail> tail_;
  absl::flat_hash_map<uint64_t, Pending> pending_;  // by the request's number >> kBatchBits
  uint64_t next_batch_ = 1;
  absl::flat_hash_map<uint64_t, std::shared_ptr<OrderSink>> sinks_;
  std::chrono::steady_clock::time_point started_, committed_at_, next_clock_;
  size_t uncommitted_ = 0;
  bool caught_up_ = false, read_only_ = false;
  absl::Status failed_;  // found between turns: why the state or the log can't be used
  int times_begun_ = 1;
  bool recovering_ = false;
  std::vector<queue::Append> held_back_;               // while the log recovers
  std::chrono::steady_clock::time_point quiet_until_;  // after a failed append

  mutable std::mutex store_mutex_;
  std::shared_ptr<storage::StateStore> store_;

  std::atomic<uint64_t> next_stream_{1};
  std::atomic<uint64_t> unanswered_{0}, unanswered_bytes_{0}, changes_{0};
  std::atomic<bool> serving_{false}, caught_up_seen_{false}, stopping_{false};
  std::thread recovery_, thread_;
};

}  // namespace muster::server
