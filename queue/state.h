// The model: what the fold of the log is. Live jobs, nodes and queues in memory, with the indexes derived
// from them; what has ended is in the state store and comes in as Found.
//
// Only apply() (queue/apply.h) changes a State. Entities are the messages of state.proto; flush() turns those
// that changed since the last one into store writes and keeps the state digest. One thread; pure.
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
#include "queue/digest.h"
#include "queue/history.h"
#include "queue/spec_info.h"
#include "scheduler/cluster.h"
#include "scheduler/planner.h"
#include "scheduler/queues.h"
#include "scheduler/request.h"

namespace muster::queue {

using scheduler::GangKey;

struct Job {
  v1::JobState state;
  std::shared_ptr<const SpecInfo> info;           // of its spec; equal specs share one
  std::shared_ptr<const scheduler::Shape> shape;  // info's, or another after `update`
  StateDigest digest;                             // of what was flushed last
  bool dirty = false, stored = false, spec_unsaved = false;
  bool in_planner = false;  // derived
  int64_t deadline_ms = 0;  // derived: its entry in State::deadlines; 0: none
  GangKey key() const { return {state.id(), state.element()}; }
  bool is_array() const { return state.has_array(); }
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

// Live gangs of a queue, elements counted one by one, an array's waiting ones in all.
struct QueueCounts {
  int64_t pending = 0;
  int64_t running = 0;  // those that hold places
  bool operator==(const QueueCounts&) const = default;
};

class State {
 public:
  State();  // meta.position is -1: nothing folded
  State(State&&) = default;
  State& operator=(State&&) = default;

  v1::MetaState meta;
  absl::flat_hash_map<GangKey, std::unique_ptr<Job>> jobs;  // live ones, and live elements
  std::map<std::string, NodeEntry> nodes;
  std::map<std::string, v1::QueueState> queues;     // declared ones
  scheduler::Cluster cluster;                       // derived
  scheduler::Queues usage;                          // derived
  scheduler::Planner planner;                       // derived
  std::set<std::pair<int64_t, GangKey>> deadlines;  // derived: when the leader must look at a gang
  absl::flat_hash_map<uint64_t, std::set<uint32_t>>
      live_elements;                          // derived: of each array, element = index + 1
  std::map<std::string, QueueCounts> counts;  // derived: by queue
  Chain chain;                                // after meta.position

  Job* find(const GangKey& key);
  const Job* find(const GangKey& key) const;

  // Adds a live job or element.
  Job& add(v1::JobState state, std::shared_ptr<const SpecInfo> info);
  std::shared_ptr<const SpecInfo> intern_spec(const v1::JobSpec& spec);

  // Marks for the next flush.
  void touch(Job& job);
  void touch(NodeEntry& node);
  void touch_queue(const std::string& name);
  void put_key(const std::string& id, const v1::KeyState& now, const std::optional<v1::KeyState>& before);
  void drop_key(const std::string& id, const v1::KeyState& before);
  void put_name(const std::string& id, uint64_t job, std::optional<uint64_t> before);
  void note_event(uint64_t job);  // the record being applied is about this job
  // Moves a job that has ended out of `jobs`; until the next flush recently_ended() finds it.
  void retire(Job& job);
  const Job* recently_ended(const GangKey& key) const;

  // Keep the derived indexes; called after every change of what they depend on.
  void set_phase(Job& job, v1::Phase phase);
  void uncount(const Job& job);  // before, and count() after, a change of phase, queue or waiting elements
  void count(const Job& job);
  void refresh_waiting(Job& job);  // in the planner or not
  void refresh_deadline(Job& job);
  void hold_places(Job& job);  // of its present attempt
  void release_places(Job& job);
  void refresh_node(NodeEntry& node);  // description, session and standing, in the cluster

  // What changed since the last flush, as store writes, the meta entity last; keeps the digest.
  std::vector<Write> flush();
  // Of everything up to the last flush.
  const StateDigest& digest() const { return digest_; }
  int64_t flushed_position() const { return flushed_position_; }

  // Loading: meta, nodes and queues first, then jobs, then finish_load() once.
  void load_meta(v1::MetaState loaded);
  void load_node(v1::NodeState node);
  void load_queue(v1::QueueState queue);
  void load_job(v1::JobState job, const std::string& spec);
  void finish_load();

  // Stops the process if an index differs from what the entities say. Slow: for tests.
  void check_invariants() const;

 private:
  struct KeyChange {
    std::optional<v1::KeyState> now, before;
  };
  void add_counts(const Job& job, int sign);
  void describe_node(const NodeEntry& node);
  void flush_jobs(std::vector<Write>* out);
  void flush_nodes_and_queues(std::vector<Write>* out);
  void flush_keys_and_names(std::vector<Write>* out);
  void flush_events(std::vector<Write>* out);
  void flush_meta(std::vector<Write>* out);
  void replace(StateDigest* kept, Entity table, std::string_view key, std::string_view value);

  StateDigest digest_, meta_digest_;
  int64_t flushed_position_ = -1;
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, std::weak_ptr<const SpecInfo>> specs_;
  size_t specs_swept_ = 0;
  std::vector<GangKey> dirty_jobs_;
  std::vector<std::string> dirty_nodes_;
  std::set<std::string> dirty_queues_;
  std::map<std::string, StateDigest> queue_digests_;
  absl::flat_hash_map<GangKey, std::unique_ptr<Job>> ended_;  // since the last flush
  absl::flat_hash_map<std::string, KeyChange> key_changes_;
  absl::flat_hash_map<std::string, std::pair<std::optional<uint64_t>, uint64_t>> name_changes_;
  std::vector<std::pair<uint64_t, int64_t>> events_;

 public:
  // Uncommitted values, for History implementations: what a flush would write for this key, if anything would
  // change.
  const KeyChange* changed_key(const std::string& id) const;
  std::optional<uint64_t> changed_name(const std::string& id) const;
};

// Sortable keys of the store.
std::string store_key(const GangKey& key);                        // 8 + 4 bytes, big-endian
std::string event_key(uint64_t job, int64_t position);            // 8 + 8
std::string expiry_key(int64_t expires_ms, std::string_view id);  // 8 + id
GangKey gang_of_store_key(std::string_view key);
// The positions that an entry of kEvents stands for, rising: its value's, then its key's.
std::vector<int64_t> positions_of_event(std::string_view key, std::string_view value);
std::string position_key(int64_t position);  // 8
int64_t expiry_of_key(std::string_view key);
// "user\0text": how idempotency keys and job names are kept apart between users.
std::string owned(std::string_view user, std::string_view text);

// Deterministic: the same entity gives the same bytes.
std::string entity_bytes(const google::protobuf::MessageLite& message);
scheduler::Amounts amounts_of(const google::protobuf::RepeatedPtrField<v1::Amount>& from);

bool terminal(v1::Phase phase);
bool holds_places(v1::Phase phase);  // PLACED … STOPPING
int64_t waiting_elements(const v1::ArrayState& array);

// When the leader must look at this gang again, in cell time (start limit, time limit, a member's restart);
// 0: never.
int64_t deadline_of(const Job& job);

// What the member of this rank holds.
scheduler::Holding holding_of(const Job& job, uint32_t rank);

}  // namespace muster::queue
