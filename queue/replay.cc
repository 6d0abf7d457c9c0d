#include "queue/replay.h"

#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/apply.h"

namespace muster::queue {
namespace {

// Only what reads() can ask for.
class MemoryHistory : public HistoryReader {
 public:
  std::optional<std::string> get(Entity table, const std::string& key) override {
    const auto& values = tables_[static_cast<int>(table)];
    const auto it = values.find(key);
    if (it == values.end()) return std::nullopt;
    return it->second;
  }

  void scan_expiry(const std::function<bool(const std::string&)>& visit) override {
    for (const auto& entry : expiry_) {
      if (!visit(entry)) return;
    }
  }

  void write(std::vector<Write> writes) {
    for (Write& write : writes) {
      if (write.table == Entity::kKeyExpiry) {
        if (write.value)
          expiry_.insert(write.key);
        else
          expiry_.erase(write.key);
      } else if (write.table == Entity::kKeys || write.table == Entity::kNames ||
                 write.table == Entity::kEnded) {
        auto& values = tables_[static_cast<int>(write.table)];
        if (write.value)
          values[std::move(write.key)] = std::move(*write.value);
        else
          values.erase(write.key);
      }
    }
  }

 private:
  absl::flat_hash_map<std::string, std::string> tables_[11];
  std::set<std::string> expiry_;
};

}  // namespace

struct Replayer::Impl {
  State state;
  MemoryHistory history;
  v1::Record record;  // reused
  int flush_every = 0;
  int unflushed = 0;

  void flush() {
    history.write(state.flush());
    unflushed = 0;
  }
};

Replayer::Replayer(int flush_every) : impl_(std::make_unique<Impl>()) {
  impl_->flush_every = flush_every;
}
Replayer::~Replayer() = default;

absl::Status Replayer::add(int64_t position, int64_t timestamp_ms, std::string_view key,
                           std::string_view value) {
  Impl& r = *impl_;
  LogInput input{position, timestamp_ms, chain_next(r.state.chain, position, key, value), nullptr};
  switch (decode_record(value, r.state.meta.cell(), &r.record)) {
    case Decoded::kOk:
      input.record = &r.record;
      break;
    case Decoded::kUndecodable:
      break;
    case Decoded::kUnknown:
      return absl::FailedPreconditionError(
          absl::StrCat("position ", position, ": a record of type '", r.record.type(), "', format ",
                       r.record.format(), ", is unknown to this release, which reads formats up to ", kFormat,
                       "; use the release that wrote it"));
  }
  Found found;
  if (input.record != nullptr) {
    const ReadSet wanted = reads(r.state, *input.record, timestamp_ms);
    if (!wanted.empty()) found = fetch(r.state, wanted, r.history);
  }
  Effects effects;
  const Outcome outcome = apply(r.state, input, found, &effects);
  if (++r.unflushed >= r.flush_every) r.flush();
  if (outcome.code == absl::StatusCode::kDataLoss)
    return absl::DataLossError(absl::StrCat("position ", position, ": ", outcome.message));
  return absl::OkStatus();
}

std::string Replayer::digest_hex() {
  impl_->flush();
  return impl_->state.digest().hex();
}

Chain Replayer::chain() const {
  return impl_->state.chain;
}
const State& Replayer::state() const {
  return impl_->state;
}

}  // namespace muster::queue
