// The engine: a server's whole behaviour as a pure machine. Inputs: records read from the log, requests,
// agents' messages, the passing of time, what became of appends. Outputs: records to append, replies, orders
// to agents, entities to write. The driver (queue/server/driver.h) does all I/O; the simulator runs the same
// engine.
//
// One thread. Nothing here blocks, and nothing is retried blindly: an append of unknown outcome makes the
// engine claim a new term.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/v1/record.pb.h"
#include "muster/v1/service.pb.h"
#include "queue/apply.h"
#include "queue/state.h"

namespace muster::queue {

struct EngineOptions {
  std::string cell = "local";
  std::string server;   // stable identity, kept in the server's directory
  std::string address;  // what clients and agents dial
  std::string version;
  uint64_t session = 0;  // random, never 0
  uint64_t nonce_seed = 0;
  int64_t tick_ms = 0;         // between two Ticks; 0: a third of the lease
  int64_t lease_ms = 2000;     // written into a new log; an existing log's own lease counts
  bool exclusive_log = false;  // nobody else can be writing: claim the term at once
  uint64_t live_jobs_max = 4'000'000;
  uint64_t unanswered_max = 50'000;  // submissions in flight; one more is refused
};

// A record to append. Sequences grow by one; the driver keeps their order.
struct Append {
  uint64_t sequence = 0;
  std::string key;
  std::string type;
  uint32_t format = 1;
  std::string value;
};

struct Reply {
  uint64_t request = 0;  // as passed to request()
  Outcome outcome;
};

// To an agent's stream, in order.
struct Order {
  uint64_t stream = 0;
  v1::ServerMessage message;
  bool close = false;  // end the stream after this message
};

struct Output {
  std::vector<Append> appends;
  std::vector<Reply> replies;
  std::vector<Order> orders;
  std::string fatal;  // the server must stop (or go read-only): what happened, where, what to do
};

class Engine {
 public:
  Engine(EngineOptions options, State state);
  ~Engine();

  // ---- the log ----
  ReadSet reads(const v1::Record& record, int64_t timestamp_ms) const;
  // Every record, in order of position.
  void fold(const LogInput& input, const Found& found, Output* out);
  // Call when the records at hand have been folded: plans if a round is due, decides what has fallen due,
  // leads. `caught_up`: the log's end was reached (the first time: the server starts to act).
  void settle(int64_t now_ms, bool caught_up, Output* out);
  // What became of appends first … last, when it was not OK. `unknown`: they may be in the log.
  void append_failed(uint64_t first, uint64_t last, bool unknown, const std::string& why, Output* out);

  // ---- requests: a record's body without an envelope; the reply comes when it was folded ----
  // The body is one of Submitted, CancelRequested … Updated, NodeSet, QueueSet, QueueRemoved, PolicySet.
  void request(uint64_t request, v1::Record body, int64_t wall_ms, Output* out);
  void forget_request(uint64_t request);  // nobody waits for its reply any more

  // ---- agents: `stream` is the driver's number of a connection ----
  void agent_message(uint64_t stream, v1::AgentMessage message, int64_t now_ms, int64_t wall_ms, Output* out);
  void agent_gone(uint64_t stream, int64_t now_ms, Output* out);
  // The stream that holds this node's session here, 0 when it is elsewhere or nowhere.
  uint64_t stream_of(const std::string& node) const;

  // ---- time: the server's own monotonic clock; decides only when to try, never what holds ----
  void clock(int64_t now_ms, int64_t wall_ms, Output* out);

  std::vector<Write> flush();
  const State& state() const;
  bool leader() const;
  bool caught_up() const;
  const EngineOptions& options() const;
  // The earliest cell time at which something falls due by itself: a limit, a member's restart, the end of a
  // back-off, a silent node's loss. 0: nothing does. A simulator's clock jumps there.
  int64_t wake_at_ms() const;
  uint64_t rounds() const;  // planned so far
  // What stands in the way of a waiting job.
  scheduler::Explanation explain(const GangKey& key) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::queue
