// Between the engine's entities and the state store: loading a State, reading history, writing what a flush
// gave.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "queue/history.h"
#include "queue/state.h"
#include "storage/state_store.h"

namespace muster::server {

// The state at the store's position; a fresh one when the store is empty. kDataLoss: what is stored
// contradicts itself.
absl::StatusOr<queue::State> load_state(const storage::StateStore& store);

absl::Status write_state(storage::StateStore& store, std::vector<queue::Write> writes);

// Reads of the fold. The first error is kept: what was found after it must not be folded.
class StoreHistory : public queue::HistoryReader {
 public:
  explicit StoreHistory(const storage::StateStore& store) : store_(store) {}
  std::optional<std::string> get(queue::Entity table, const std::string& key) override;
  void scan_expiry(const std::function<bool(const std::string& key)>& visit) override;
  const absl::Status& status() const { return status_; }

 private:
  const storage::StateStore& store_;
  absl::Status status_;
};

inline storage::Table table_of(queue::Entity entity) {
  return static_cast<storage::Table>(entity);
}

}  // namespace muster::server
