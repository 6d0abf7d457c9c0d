// The state store: entities by table and key, and the position that they are the fold of. memory_state_store
// for tests and `memory:`, rocks_state_store for servers; one contract test (state_store_contract_test.cc)
// for both.
//
// A batch is applied whole or not at all, in order of batches, but not synced: after a crash the store is the
// state at some earlier batch, and the log covers the tail. One thread writes; reads may come from any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::storage {

enum class Table : uint8_t {
  kMeta,       // "meta" → MetaState
  kLive,       // job id, element → JobState of jobs that have not ended
  kEnded,      // the same, of jobs that have: read on demand, never loaded
  kSpecs,      // job id → JobSpec
  kNodes,      // name → NodeState
  kQueues,     // name → QueueState
  kKeys,       // user, idempotency key → KeyState
  kKeyExpiry,  // expiry, key → ""
  kNames,      // user, job name → NameState of the newest
  kEvents,     // job id, position → earlier positions: which records are about a job, one entry a commit
  kDigests,    // position → state digest
};
inline constexpr int kTableCount = 11;

struct StoreWrite {
  Table table;
  std::string key;
  std::optional<std::string> value;  // absent: delete
};

class StateStore {
 public:
  virtual ~StateStore() = default;
  // All of it or, after an error or a crash, none.
  virtual absl::Status apply(std::vector<StoreWrite> batch) = 0;
  virtual absl::StatusOr<std::optional<std::string>> get(Table table, std::string_view key) const = 0;
  // Entries with from <= key, in key order (backwards: key <= from, or from the end when `from` is empty),
  // until `visit` says false.
  virtual absl::Status scan(
      Table table, std::string_view from, bool backwards,
      const std::function<bool(std::string_view key, std::string_view value)>& visit) const = 0;
  // Deletes everything.
  virtual absl::Status clear() = 0;
};

std::unique_ptr<StateStore> make_memory_state_store();

// Opens or creates. A directory that is damaged (corruption, a lost file) is set aside as DIR.damaged-N and a
// new one is made: `*set_aside` then names it, and the caller folds the log anew. Locked: one process.
absl::StatusOr<std::unique_ptr<StateStore>> open_rocks_state_store(const std::string& directory,
                                                                   std::string* set_aside);

}  // namespace muster::storage
