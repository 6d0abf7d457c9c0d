#include "queue/server/store_access.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::server {
namespace {

using storage::StateStore;
using storage::Table;

absl::Status damaged(std::string_view what) {
  return absl::DataLossError(absl::StrCat("the state store is damaged: ", std::string(what)));
}

// Parses every entity of a table and hands it on.
template <typename Message, typename Take>
absl::Status load_table(const StateStore& store, Table table, Take take) {
  absl::Status bad;
  const absl::Status scanned =
      store.scan(table, "", false, [&](std::string_view key, std::string_view value) {
        Message message;
        if (!message.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
          bad = damaged(absl::StrCat("an entity of table ", static_cast<int>(table), " can't be read"));
          return false;
        }
        bad = take(std::move(message));
        return bad.ok();
      });
  return scanned.ok() ? bad : scanned;
}

absl::Status load_jobs(const StateStore& store, queue::State* state) {
  uint64_t spec_of = 0;  // the last spec read: an array's elements follow it
  std::string spec;
  return load_table<v1::JobState>(store, Table::kLive, [&](v1::JobState job) {
    if (job.id() != spec_of) {
      auto found = store.get(Table::kSpecs, queue::store_key({job.id(), 0}));
      if (!found.ok()) return found.status();
      if (!found->has_value()) return damaged(absl::StrCat("job ", job.id(), " has no spec"));
      spec = **std::move(found);
      spec_of = job.id();
    }
    state->load_job(std::move(job), spec);
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<queue::State> load_state(const StateStore& store) {
  queue::State state;
  auto meta_bytes = store.get(Table::kMeta, "meta");
  if (!meta_bytes.ok()) return meta_bytes.status();
  if (!meta_bytes->has_value()) return state;
  v1::MetaState meta;
  if (!meta.ParseFromString(**meta_bytes)) return damaged("its position can't be read");
  state.load_meta(std::move(meta));
  absl::Status loaded = load_table<v1::NodeState>(store, Table::kNodes, [&](v1::NodeState node) {
    state.load_node(std::move(node));
    return absl::OkStatus();
  });
  if (!loaded.ok()) return loaded;
  loaded = load_table<v1::QueueState>(store, Table::kQueues, [&](v1::QueueState queue) {
    state.load_queue(std::move(queue));
    return absl::OkStatus();
  });
  if (!loaded.ok()) return loaded;
  loaded = load_jobs(store, &state);
  if (!loaded.ok()) return loaded;
  state.finish_load();
  return state;
}

absl::Status write_state(StateStore& store, std::vector<queue::Write> writes) {
  std::vector<storage::StoreWrite> batch;
  batch.reserve(writes.size());
  for (queue::Write& write : writes)
    batch.push_back({table_of(write.table), std::move(write.key), std::move(write.value)});
  return store.apply(std::move(batch));
}

std::optional<std::string> StoreHistory::get(queue::Entity table, const std::string& key) {
  auto found = store_.get(table_of(table), key);
  if (found.ok()) return *std::move(found);
  if (status_.ok()) status_ = found.status();
  return std::nullopt;
}

void StoreHistory::scan_expiry(const std::function<bool(const std::string& key)>& visit) {
  const absl::Status scanned =
      store_.scan(Table::kKeyExpiry, "", false,
                  [&](std::string_view key, std::string_view) { return visit(std::string(key)); });
  if (!scanned.ok() && status_.ok()) status_ = scanned;
}

}  // namespace muster::server
