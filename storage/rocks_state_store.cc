#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/state_store.h"

namespace muster::storage {
namespace {

constexpr std::array<const char*, kTableCount> kTableNames = {
    "meta", "live", "ended", "specs", "nodes", "queues", "keys", "key_expiry", "names", "events", "digests"};

rocksdb::Slice slice(std::string_view view) {
  return {view.data(), view.size()};
}
std::string_view view(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

absl::Status to_status(const std::string& directory, const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrCat("state store ", directory, ": ", status.ToString());
  if (status.IsCorruption()) return absl::DataLossError(message);
  if (status.IsNoSpace()) return absl::UnavailableError(message);
  return absl::InternalError(message);
}

rocksdb::DBOptions db_options() {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.paranoid_checks = true;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.max_background_jobs = 2;
  options.max_total_wal_size = size_t{256} << 20;
  options.db_write_buffer_size = size_t{128} << 20;  // of all tables together
  options.bytes_per_sync = size_t{1} << 20;
  options.wal_bytes_per_sync = size_t{1} << 20;  // spreads the write-back; it waits for nothing
  options.keep_log_file_num = 4;
  options.max_log_file_size = size_t{4} << 20;
  options.stats_dump_period_sec = 0;
  options.max_open_files = 512;
  options.allow_concurrent_memtable_write = false;  // there is one writer
  return options;
}

rocksdb::ColumnFamilyOptions table_options(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions blocks;
  blocks.block_cache = cache;
  blocks.cache_index_and_filter_blocks = true;
  blocks.pin_l0_filter_and_index_blocks_in_cache = true;
  blocks.whole_key_filtering = true;
  blocks.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  blocks.format_version = 5;
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(blocks));
  options.write_buffer_size = size_t{32} << 20;
  options.memtable_prefix_bloom_size_ratio = 0.05;
  options.memtable_whole_key_filtering = true;
  options.compression = rocksdb::kLZ4Compression;
  return options;
}

class RocksStateStore : public StateStore {
 public:
  RocksStateStore(std::string directory, std::unique_ptr<rocksdb::DB> db,
                  std::vector<rocksdb::ColumnFamilyHandle*> tables)
      : directory_(std::move(directory)), db_(std::move(db)), tables_(std::move(tables)) {}

  ~RocksStateStore() override {
    for (rocksdb::ColumnFamilyHandle* table : tables_) db_->DestroyColumnFamilyHandle(table);
    db_->Close();
  }

  absl::Status apply(std::vector<StoreWrite> batch) override {
    batch_.Clear();
    for (const StoreWrite& write : batch) {
      if (write.value) {
        batch_.Put(handle(write.table), slice(write.key), slice(*write.value));
      } else {
        batch_.Delete(handle(write.table), slice(write.key));
      }
    }
    return to_status(directory_, db_->Write(rocksdb::WriteOptions(), &batch_));
  }

  absl::StatusOr<std::optional<std::string>> get(Table table, std::string_view key) const override {
    std::string value;
    rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), handle(table), slice(key), &value);
    if (status.IsNotFound()) return std::optional<std::string>();
    if (!status.ok()) return to_status(directory_, status);
    return std::optional<std::string>(std::move(value));
  }

  absl::Status scan(Table table, std::string_view from, bool backwards,
                    const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(rocksdb::ReadOptions(), handle(table)));
    if (!backwards) {
      for (at->Seek(slice(from)); at->Valid() && visit(view(at->key()), view(at->value()));) at->Next();
    } else {
      if (from.empty()) {
        at->SeekToLast();
      } else {
        at->SeekForPrev(slice(from));
      }
      while (at->Valid() && visit(view(at->key()), view(at->value()))) at->Prev();
    }
    return to_status(directory_, at->status());
  }

  absl::Status clear() override {
    batch_.Clear();  // one batch: a crash leaves all or nothing
    for (rocksdb::ColumnFamilyHandle* table : tables_) {
      std::unique_ptr<rocksdb::Iterator> last(db_->NewIterator(rocksdb::ReadOptions(), table));
      last->SeekToLast();
      if (!last->status().ok()) return to_status(directory_, last->status());
      if (last->Valid()) batch_.DeleteRange(table, "", last->key().ToString() + '\0');
    }
    return to_status(directory_, db_->Write(rocksdb::WriteOptions(), &batch_));
  }

 private:
  // The first handle is RocksDB's own "default" table, which is not used.
  rocksdb::ColumnFamilyHandle* handle(Table table) const { return tables_[static_cast<size_t>(table) + 1]; }

  const std::string directory_;
  const std::unique_ptr<rocksdb::DB> db_;
  const std::vector<rocksdb::ColumnFamilyHandle*> tables_;
  rocksdb::WriteBatch batch_;  // the writing thread's; kept for its memory
};

rocksdb::Status open_db(const std::string& directory, std::unique_ptr<StateStore>* out) {
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(size_t{64} << 20);
  std::vector<rocksdb::ColumnFamilyDescriptor> tables;
  tables.emplace_back(rocksdb::kDefaultColumnFamilyName, table_options(cache));
  for (const char* name : kTableNames) tables.emplace_back(name, table_options(cache));
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(db_options(), directory, tables, &handles, &db);
  if (status.ok()) {
    *out = std::make_unique<RocksStateStore>(directory, std::unique_ptr<rocksdb::DB>(db), std::move(handles));
  }
  return status;
}

bool is_locked(const rocksdb::Status& status) {
  return status.IsIOError() && absl::StrContains(status.ToString(), "lock ");
}

// What another try can't mend: bytes that are wrong, or files that are gone.
bool is_damaged(const rocksdb::Status& status) {
  return status.IsCorruption() || status.IsPathNotFound() ||
         (status.IsIOError() && absl::StrContains(status.ToString(), "No such file"));
}

absl::StatusOr<std::string> set_aside_directory(const std::string& directory) {
  for (int n = 1;; ++n) {
    const std::string aside = absl::StrCat(directory, ".damaged-", n);
    std::error_code error;
    if (std::filesystem::exists(aside, error)) continue;
    std::filesystem::rename(directory, aside, error);
    if (!error) return aside;
    return absl::InternalError(absl::StrCat("cannot set the damaged state store ", directory, " aside as ",
                                            aside, ": ", error.message()));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateStore>> open_rocks_state_store(const std::string& directory,
                                                                   std::string* set_aside) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return absl::InternalError(
        absl::StrCat("cannot make the state store's directory ", directory, ": ", error.message()));
  }
  std::unique_ptr<StateStore> store;
  rocksdb::Status status = open_db(directory, &store);
  if (is_locked(status)) {
    return absl::FailedPreconditionError(absl::StrCat("state store ", directory,
                                                      " is in use by another server (", status.ToString(),
                                                      "). Stop it, or use another directory"));
  }
  if (is_damaged(status)) {
    absl::StatusOr<std::string> aside = set_aside_directory(directory);
    if (!aside.ok()) return aside.status();
    *set_aside = *aside;
    status = open_db(directory, &store);
  }
  if (!status.ok()) return to_status(directory, status);
  return store;
}

}  // namespace muster::storage
