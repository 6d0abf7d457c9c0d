#include <array>
#include <functional>
#include <mutex>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "storage/state_store.h"

namespace muster::storage {
namespace {

using Entry = std::pair<std::string, std::string>;

// Hashed; its keys are kept in order from the first time that somebody walks along them, which for most
// tables is never.
class Entries {
 public:
  void write(StoreWrite write) {
    if (!write.value) {
      values_.erase(write.key);
      if (ordered_) keys_.erase(write.key);
      return;
    }
    if (ordered_) keys_.insert(write.key);
    values_.insert_or_assign(std::move(write.key), *std::move(write.value));
  }

  std::optional<std::string> get(std::string_view key) const {
    const auto found = values_.find(absl::string_view(key.data(), key.size()));
    if (found == values_.end()) return std::nullopt;
    return found->second;
  }

  std::optional<Entry> first_from(std::string_view key, bool past) {
    const Keys& keys = in_order();
    const auto at = past ? keys.upper_bound(key) : keys.lower_bound(key);
    return at == keys.end() ? std::nullopt : std::optional<Entry>(entry(*at));
  }

  std::optional<Entry> last_up_to(std::string_view key) {
    const Keys& keys = in_order();
    auto at = key.empty() ? keys.end() : keys.upper_bound(key);
    return at == keys.begin() ? std::nullopt : std::optional<Entry>(entry(*--at));
  }

  std::optional<Entry> last_before(std::string_view key) {
    const Keys& keys = in_order();
    auto at = keys.lower_bound(key);
    return at == keys.begin() ? std::nullopt : std::optional<Entry>(entry(*--at));
  }

  void clear() { *this = Entries(); }

 private:
  using Keys = absl::btree_set<std::string, std::less<>>;

  const Keys& in_order() {
    if (!ordered_ && !values_.empty()) {
      for (const auto& [key, value] : values_) keys_.insert(key);
      ordered_ = true;
    }
    return keys_;
  }
  Entry entry(const std::string& key) const { return {key, values_.at(key)}; }

  absl::flat_hash_map<std::string, std::string> values_;
  bool ordered_ = false;
  Keys keys_;
};

class MemoryStateStore : public StateStore {
 public:
  absl::Status apply(std::vector<StoreWrite> batch) override {
    std::lock_guard lock(mutex_);
    for (StoreWrite& write : batch) entries(write.table).write(std::move(write));
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<std::string>> get(Table table, std::string_view key) const override {
    std::lock_guard lock(mutex_);
    return entries(table).get(key);
  }

  absl::Status scan(Table table, std::string_view from, bool backwards,
                    const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    // Each step looks its neighbour up again, so that `visit` runs without the lock and may use the store.
    std::optional<Entry> entry = begin(table, from, backwards);
    while (entry && visit(entry->first, entry->second)) entry = next(table, entry->first, backwards);
    return absl::OkStatus();
  }

  absl::Status clear() override {
    std::lock_guard lock(mutex_);
    for (Entries& table : tables_) table.clear();
    return absl::OkStatus();
  }

 private:
  Entries& entries(Table table) const { return tables_[static_cast<size_t>(table)]; }

  std::optional<Entry> begin(Table table, std::string_view from, bool backwards) const {
    std::lock_guard lock(mutex_);
    return backwards ? entries(table).last_up_to(from) : entries(table).first_from(from, /*past=*/false);
  }

  std::optional<Entry> next(Table table, std::string_view from, bool backwards) const {
    std::lock_guard lock(mutex_);
    return backwards ? entries(table).last_before(from) : entries(table).first_from(from, /*past=*/true);
  }

  mutable std::mutex mutex_;
  mutable std::array<Entries, kTableCount> tables_;  // mutable: a scan may put keys in order
};

}  // namespace

std::unique_ptr<StateStore> make_memory_state_store() {
  return std::make_unique<MemoryStateStore>();
}

}  // namespace muster::storage
