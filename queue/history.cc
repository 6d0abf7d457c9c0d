#include "queue/history.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "queue/state.h"

namespace muster::queue {
namespace {

void want_job(const State& state, uint64_t job, ReadSet* out) {
  if (job != 0 && state.find({job, 0}) == nullptr) out->jobs.push_back(job);
}

void want_references(const State& state, const std::string& user,
                     const google::protobuf::RepeatedPtrField<std::string>& references, ReadSet* out) {
  for (const std::string& reference : references) {
    uint64_t id = 0;
    if (absl::SimpleAtoi(reference, &id)) {
      want_job(state, id, out);
    } else {
      out->names.push_back(owned(user, reference));
    }
  }
}

}  // namespace

ReadSet reads(const State& state, const v1::Record& record, int64_t timestamp_ms) {
  ReadSet out;
  const int64_t step = std::clamp<int64_t>(timestamp_ms - state.meta.log_ms(), 0, state.meta.lease_ms());
  const int64_t cell_ms = state.meta.cell_ms() + step;
  if (state.meta.next_key_expiry_ms() != 0 && state.meta.next_key_expiry_ms() <= cell_ms) {
    out.expired_keys = true;
    out.expired_until_ms = cell_ms;
  }
  switch (record.body_case()) {
    case v1::Record::kSubmitted: {
      const v1::Submitted& body = record.submitted();
      out.key = owned(body.spec().user(), body.key());
      out.own_name = owned(body.spec().user(), body.spec().name());
      want_references(state, body.spec().user(), body.spec().after().ok(), &out);
      want_references(state, body.spec().user(), body.spec().after().any(), &out);
      want_job(state, body.retry_of(), &out);
      break;
    }
    case v1::Record::kCancelRequested:
      want_job(state, record.cancel_requested().job(), &out);
      break;
    case v1::Record::kHoldRequested:
      want_job(state, record.hold_requested().job(), &out);
      break;
    case v1::Record::kReleaseRequested:
      want_job(state, record.release_requested().job(), &out);
      break;
    case v1::Record::kRequeueRequested:
      want_job(state, record.requeue_requested().job(), &out);
      break;
    case v1::Record::kUpdated:
      want_job(state, record.updated().job(), &out);
      break;
    default:
      break;
  }
  return out;
}

namespace {

void fetch_job(const State& state, uint64_t job, HistoryReader& reader, Found* out) {
  if (state.find({job, 0}) != nullptr || out->jobs.contains(job)) return;
  if (const Job* ended = state.recently_ended({job, 0})) {
    out->jobs[job] = ended->state;
  } else if (auto bytes = reader.get(Entity::kEnded, store_key({job, 0}))) {
    out->jobs[job].ParseFromString(*bytes);
  }
}

void fetch_name(const State& state, const std::string& name, HistoryReader& reader, Found* out) {
  if (auto changed = state.changed_name(name)) {
    out->names[name] = *changed;
  } else if (auto bytes = reader.get(Entity::kNames, name)) {
    v1::NameState found;
    found.ParseFromString(*bytes);
    out->names[name] = found.job();
  }
}

std::optional<v1::KeyState> fetch_key(const State& state, const std::string& key, HistoryReader& reader) {
  if (const auto* change = state.changed_key(key)) return change->now;
  const auto bytes = reader.get(Entity::kKeys, key);
  if (!bytes) return std::nullopt;
  v1::KeyState out;
  out.ParseFromString(*bytes);
  return out;
}

void fetch_expired(const State& state, int64_t until_ms, HistoryReader& reader, Found* out) {
  reader.scan_expiry([&](const std::string& entry) {
    const std::string id = entry.substr(8);
    const auto key = fetch_key(state, id, reader);
    if (!key || key->expires_ms() != expiry_of_key(entry)) return true;  // dropped since the last flush
    if (key->expires_ms() > until_ms || out->expired.size() == static_cast<size_t>(kKeysExpiredMax)) {
      out->next_expiry_ms = key->expires_ms();
      return false;
    }
    out->expired.emplace_back(id, *key);
    return true;
  });
}

}  // namespace

Found fetch(const State& state, const ReadSet& wanted, HistoryReader& reader) {
  Found out;
  if (wanted.key) out.key = fetch_key(state, *wanted.key, reader);
  if (wanted.own_name) fetch_name(state, *wanted.own_name, reader, &out);
  for (const std::string& name : wanted.names) {
    fetch_name(state, name, reader, &out);
    if (const auto named = out.names.find(name); named != out.names.end())
      fetch_job(state, named->second, reader, &out);
  }
  for (uint64_t job : wanted.jobs) fetch_job(state, job, reader, &out);
  if (wanted.expired_keys) fetch_expired(state, wanted.expired_until_ms, reader, &out);
  return out;
}

}  // namespace muster::queue
