#include <array>
#include <map>
#include <mutex>

#include "storage/state_store.h"

namespace muster::storage {
namespace {

class MemoryStateStore : public StateStore {
 public:
  absl::Status apply(const std::vector<StoreWrite>& batch) override {
    std::lock_guard lock(mutex_);
    for (const StoreWrite& write : batch) {
      auto& table = tables_[static_cast<size_t>(write.table)];
      if (write.value) {
        table[write.key] = *write.value;
      } else {
        table.erase(write.key);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<std::string>> get(Table table, std::string_view key) const override {
    std::lock_guard lock(mutex_);
    const auto& entries = tables_[static_cast<size_t>(table)];
    auto found = entries.find(key);
    if (found == entries.end()) return std::optional<std::string>();
    return std::optional<std::string>(found->second);
  }

  absl::Status scan(Table table, std::string_view from, bool backwards,
                    const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    // Each step looks its neighbour up again, so that `visit` runs without the lock and may use the store.
    std::optional<Entry> entry =
        backwards ? last_up_to(table, from) : first_from(table, from, /*past=*/false);
    while (entry && visit(entry->first, entry->second)) {
      entry = backwards ? last_before(table, entry->first) : first_from(table, entry->first, /*past=*/true);
    }
    return absl::OkStatus();
  }

  absl::Status clear() override {
    std::lock_guard lock(mutex_);
    for (auto& table : tables_) table.clear();
    return absl::OkStatus();
  }

 private:
  using Entries = std::map<std::string, std::string, std::less<>>;
  using Entry = std::pair<std::string, std::string>;

  std::optional<Entry> first_from(Table table, std::string_view key, bool past) const {
    std::lock_guard lock(mutex_);
    const Entries& entries = tables_[static_cast<size_t>(table)];
    auto at = past ? entries.upper_bound(key) : entries.lower_bound(key);
    if (at == entries.end()) return std::nullopt;
    return *at;
  }

  std::optional<Entry> last_up_to(Table table, std::string_view key) const {
    std::lock_guard lock(mutex_);
    const Entries& entries = tables_[static_cast<size_t>(table)];
    auto at = key.empty() ? entries.end() : entries.upper_bound(key);
    if (at == entries.begin()) return std::nullopt;
    return *--at;
  }

  std::optional<Entry> last_before(Table table, std::string_view key) const {
    std::lock_guard lock(mutex_);
    const Entries& entries = tables_[static_cast<size_t>(table)];
    auto at = entries.lower_bound(key);
    if (at == entries.begin()) return std::nullopt;
    return *--at;
  }

  mutable std::mutex mutex_;
  std::array<Entries, kTableCount> tables_;
};

}  // namespace

std::unique_ptr<StateStore> make_memory_state_store() {
  return std::make_unique<MemoryStateStore>();
}

}  // namespace muster::storage
