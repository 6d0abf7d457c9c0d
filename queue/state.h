// The model: what the fold of the log is. Live jobs, nodes and queues in memory, with the indexes derived from them;
// what has ended is in the state store and comes in as Found.
//
// Only apply() (queue/apply.h) changes a State. Entities are the messages of state.proto; flush() turns those that
// changed since the last one into store writes and keeps the state digest. One thread; pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "muster/v1/state.pb.h"
#include "proto/chain.h"
#include "queue/history.h"
#include "scheduler/cluster.h"
#include "scheduler/planner.h"
#include "scheduler/queues.h"
#include "scheduler/request.h"

namespace muster::queue {

using scheduler::GangKey;

// 128-bit sum, order-free: adding and subtracting entity digests gives the same total in any order.
struct StateDigest {
  uint64_t low = 0;
  uint64_t high = 0;
  void add(const StateDigest& other);
  void subtract(const StateDigest& other);
  bool operator==(const StateDigest&) const = default;
  std::string hex() const;
  std::string bytes() const;
  static StateDigest from_bytes(std::string_view bytes);
  static StateDigest of(Entity table, std::string_view key, std::string_view value);
};

struct Job {
  v1::JobState state;
  std::shared_ptr<const std::string> spec;             // serialised JobSpec, as it was submitted
  std::shared_ptr<const scheduler::Shape> shape;       // from the spec and what was updated
  StateDigest digest;                                  // of what was flushed last
  bool dirty = false;
  bool spec_unsaved = false;
  GangKey key() const { return {state.id(), state.element()}; }
};

struct NodeEntry {
  v1::NodeState state;
  StateDigest digest;
  bool dirty = false;
  std::set<std::pair<GangKey, uint32_t>> members;  // (gang, rank) that have a place here: derived
};

// One change of an entity's stored form.
struct Write {
  Entity table;
  std::string key;
  std::optional<std::string> value;  // absent: delete
};

class State {
 public:
  State() = default;
  State(State&&) = default;
  State& operator=(State&&) = default;

  v1::MetaState meta;
  absl::flat_hash_map<GangKey, std::unique_ptr<Job>> jobs;         // live ones, and live elements
  std::map<std::string, NodeEntry> nodes;
  std::map<std::string, v1::QueueState> queues;                     // declared ones
  scheduler::Cluster cluster;                                       // derived
  scheduler::Queues usage;                                          // derived
  scheduler::Planner planner;                                       // derived
  std::set<std::pair<int64_t, GangKey>> deadlines;                  // derived: when the leader must look at a gang
  absl::flat_hash_map<std::string, uint64_t> names;                 // user \0 name → newest live job: derived
  std::map<std::string, std::set<uint64_t>> jobs_by_queue;          // derived, live jobs (not elements)
  uint64_t pending_now = 0;                                         // derived

  Job* find(const GangKey& key);
  const Job* find(const GangKey& key) const;

  // Marks for the next flush.
  void touch(Job& job);
  void touch(NodeEntry& node);
  void touch_queue(const std::string& name);
  void put_key(const std::string& id, const v1::KeyState& now, const std::optional<v1::KeyState>& before);
  void drop_key(const std::string& id, const v1::KeyState& before);
  void put_name(const std::string& id, uint64_t job, std::optional<uint64_t> before);
  void note_event(uint64_t job);  // the record being applied is about this job
  // Moves an ended job out of memory at the next flush; until then recent() finds it.
  void end(Job& job);
  const v1::JobState* recently_ended(const GangKey& key) const;

  // What changed since the last flush, as store writes, the meta entity last; keeps the digest.
  std::vector<Write> flush();
  // Of everything up to the last flush.
  const StateDigest& digest() const { return digest_; }
  int64_t flushed_position() const { return flushed_position_; }

  // Loading: entities in any order, then finish_load() once. `digest` is what the store kept beside them.
  void load_meta(v1::MetaState loaded);
  void load_job(v1::JobState job, std::string spec);
  void load_node(v1::NodeState node);
  void load_queue(v1::QueueState queue);
  void finish_load();

  // Stops the process if an index differs from what the entities say. Slow: for tests.
  void check_invariants() const;

 private:
  friend class Pending;
  struct KeyChange {
    std::optional<v1::KeyState> now, before;
  };
  StateDigest digest_, meta_digest_;
  int64_t flushed_position_ = -1;
  std::vector<GangKey> dirty_jobs_;
  std::vector<std::string> dirty_nodes_;
  std::map<std::string, std::optional<StateDigest>> dirty_queues_;
  std::map<std::string, StateDigest> queue_digests_;
  absl::flat_hash_map<GangKey, std::unique_ptr<Job>> ended_;  // since the last flush
  absl::flat_hash_map<std::string, KeyChange> key_changes_;
  absl::flat_hash_map<std::string, std::pair<std::optional<uint64_t>, uint64_t>> name_changes_;
  std::vector<std::pair<uint64_t, int64_t>> events_;

 public:
  // Uncommitted values, for History implementations: what a flush would write for this key, if anything would change.
  const KeyChange* changed_key(const std::string& id) const;
  std::optional<uint64_t> changed_name(const std::string& id) const;
};

// Sortable keys of the store.
std::string store_key(const GangKey& key);                       // 8 + 4 bytes, big-endian
std::string event_key(uint64_t job, int64_t position);           // 8 + 8
std::string expiry_key(int64_t expires_ms, std::string_view id); // 8 + id
GangKey gang_of_store_key(std::string_view key);
int64_t position_of_event_key(std::string_view key);
// "user\0text": how idempotency keys and job names are kept apart between users.
std::string owned(std::string_view user, std::string_view text);

bool terminal(v1::Phase phase);
bool holds_places(v1::Phase phase);  // PLACED … STOPPING

}  // namespace muster::queue
