// What a record needs from finished history, and what was found: the fold reads nothing by itself.
//
// The driver asks reads() before it applies a record, fetches (from what is not committed yet, then from the
// store), and passes the values in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/v1/record.pb.h"
#include "muster/v1/state.pb.h"

namespace muster::queue {

class State;

// The kinds of entity; the state store has a table for each, in the same order.
enum class Entity : uint8_t {
  kMeta,
  kLive,
  kEnded,
  kSpecs,
  kNodes,
  kQueues,
  kKeys,
  kKeyExpiry,
  kNames,
  kEvents,
  kDigests,
};

struct ReadSet {
  std::optional<std::string> key;       // an idempotency key, owned()
  std::vector<uint64_t> jobs;           // that are not live
  std::vector<std::string> names;       // owned(), with the jobs they name
  std::optional<std::string> own_name;  // owned(), without
  bool expired_keys = false;  // the first keys_expired_max of the expiry index up to `expired_until_ms`
  int64_t expired_until_ms = 0;
  bool empty() const { return !key && !own_name && jobs.empty() && names.empty() && !expired_keys; }
};

inline constexpr int kKeysExpiredMax = 16;

struct Found {
  std::optional<v1::KeyState> key;
  std::map<uint64_t, v1::JobState> jobs;                      // those that exist
  std::map<std::string, uint64_t> names;                      // those that exist
  std::vector<std::pair<std::string, v1::KeyState>> expired;  // in (expiry, key) order
  int64_t next_expiry_ms = 0;                                 // of the first key after these; 0: none
};

// What applying this record, with this log timestamp, to this state will need.
ReadSet reads(const State& state, const v1::Record& record, int64_t timestamp_ms);

// Where committed entities are read: the driver's state store.
class HistoryReader {
 public:
  virtual ~HistoryReader() = default;
  virtual std::optional<std::string> get(Entity table, const std::string& key) = 0;
  // Keys (expiry_key()) of kKeyExpiry in order, until `visit` says false.
  virtual void scan_expiry(const std::function<bool(const std::string& key)>& visit) = 0;
};

// Fetches: what is not flushed yet first, then the reader's. What flush() returned must be readable through
// it.
Found fetch(const State& state, const ReadSet& wanted, HistoryReader& reader);

}  // namespace muster::queue
