// Turning what changed into store writes, and keeping the digest.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

#include "queue/state.h"

namespace muster::queue {

std::string entity_bytes(const google::protobuf::MessageLite& message) {
  std::string out(message.ByteSizeLong(), '\0');
  google::protobuf::io::ArrayOutputStream stream(out.data(), static_cast<int>(out.size()));
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeWithCachedSizes(&coded);
  return out;
}

void State::touch(Job& job) {
  if (job.dirty) return;
  job.dirty = true;
  dirty_jobs_.push_back(job.key());
}

void State::touch(NodeEntry& node) {
  if (node.dirty) return;
  node.dirty = true;
  dirty_nodes_.push_back(node.state.name());
}

void State::touch_queue(const std::string& name) {
  dirty_queues_.insert(name);
}

void State::put_key(const std::string& id, const v1::KeyState& now,
                    const std::optional<v1::KeyState>& before) {
  KeyChange& change = key_changes_.try_emplace(id, KeyChange{std::nullopt, before}).first->second;
  change.now = now;
  if (now.expires_ms() > 0 &&
      (meta.next_key_expiry_ms() == 0 || now.expires_ms() < meta.next_key_expiry_ms()))
    meta.set_next_key_expiry_ms(now.expires_ms());
}

void State::drop_key(const std::string& id, const v1::KeyState& before) {
  key_changes_.try_emplace(id, KeyChange{std::nullopt, before}).first->second.now.reset();
}

void State::put_name(const std::string& id, uint64_t job, std::optional<uint64_t> before) {
  name_changes_.try_emplace(id, before, job).first->second.second = job;
}

void State::note_event(uint64_t job) {
  events_.emplace_back(job, meta.position());
}

void State::retire(Job& job) {
  const GangKey key = job.key();
  uncount(job);
  if (key.element != 0) {
    const auto live = live_elements.find(key.job);
    live->second.erase(key.element);
    if (live->second.empty()) live_elements.erase(live);
  }
  const auto it = jobs.find(key);
  ended_[key] = std::move(it->second);
  jobs.erase(it);
}

const State::KeyChange* State::changed_key(const std::string& id) const {
  const auto it = key_changes_.find(id);
  return it == key_changes_.end() ? nullptr : &it->second;
}

std::optional<uint64_t> State::changed_name(const std::string& id) const {
  const auto it = name_changes_.find(id);
  if (it == name_changes_.end()) return std::nullopt;
  return it->second.second;
}

void State::replace(StateDigest* kept, Entity table, std::string_view key, std::string_view value) {
  digest_.subtract(*kept);
  *kept = StateDigest::of(table, key, value);
  digest_.add(*kept);
}

void State::flush_jobs(std::vector<Write>* out) {
  for (const GangKey& key : dirty_jobs_) {
    const auto live = jobs.find(key);
    Job& job = live != jobs.end() ? *live->second : *ended_.at(key);
    const Entity table = live != jobs.end() ? Entity::kLive : Entity::kEnded;
    std::string name = store_key(key), value = entity_bytes(job.state);
    replace(&job.digest, table, name, value);
    if (job.spec_unsaved) {
      const std::string id = store_key({key.job, 0});
      digest_.add(StateDigest::of(Entity::kSpecs, id, job.info->bytes));
      out->push_back({Entity::kSpecs, id, job.info->bytes});
      job.spec_unsaved = false;
    }
    if (table == Entity::kEnded && job.stored) out->push_back({Entity::kLive, name, std::nullopt});
    out->push_back({table, std::move(name), std::move(value)});
    job.stored = true;
    job.dirty = false;
  }
  dirty_jobs_.clear();
  ended_.clear();
}

void State::flush_nodes_and_queues(std::vector<Write>* out) {
  for (const std::string& name : dirty_nodes_) {
    NodeEntry& node = nodes.at(name);
    std::string value = entity_bytes(node.state);
    replace(&node.digest, Entity::kNodes, name, value);
    out->push_back({Entity::kNodes, name, std::move(value)});
    node.dirty = false;
  }
  dirty_nodes_.clear();
  for (const std::string& name : dirty_queues_) {
    StateDigest& kept = queue_digests_[name];
    const auto queue = queues.find(name);
    if (queue == queues.end()) {
      digest_.subtract(kept);
      queue_digests_.erase(name);
      out->push_back({Entity::kQueues, name, std::nullopt});
      continue;
    }
    std::string value = entity_bytes(queue->second);
    replace(&kept, Entity::kQueues, name, value);
    out->push_back({Entity::kQueues, name, std::move(value)});
  }
  dirty_queues_.clear();
}

void State::flush_keys_and_names(std::vector<Write>* out) {
  for (const auto& [id, change] : key_changes_) {
    if (change.before) {
      digest_.subtract(StateDigest::of(Entity::kKeys, id, entity_bytes(*change.before)));
      if (change.before->expires_ms() > 0)
        out->push_back({Entity::kKeyExpiry, expiry_key(change.before->expires_ms(), id), std::nullopt});
    }
    if (!change.now) {
      out->push_back({Entity::kKeys, id, std::nullopt});
      continue;
    }
    std::string value = entity_bytes(*change.now);
    digest_.add(StateDigest::of(Entity::kKeys, id, value));
    if (change.now->expires_ms() > 0)
      out->push_back({Entity::kKeyExpiry, expiry_key(change.now->expires_ms(), id), ""});
    out->push_back({Entity::kKeys, id, std::move(value)});
  }
  key_changes_.clear();
  v1::NameState name;
  for (const auto& [id, change] : name_changes_) {
    if (change.first) {
      name.set_job(*change.first);
      digest_.subtract(StateDigest::of(Entity::kNames, id, entity_bytes(name)));
    }
    name.set_job(change.second);
    std::string value = entity_bytes(name);
    digest_.add(StateDigest::of(Entity::kNames, id, value));
    out->push_back({Entity::kNames, id, std::move(value)});
  }
  name_changes_.clear();
}

// One entry for all of a job's events since the last flush.
void State::flush_events(std::vector<Write>* out) {
  std::sort(events_.begin(), events_.end());
  for (size_t i = 0; i < events_.size(); ++i) {
    std::string before;
    for (; i + 1 < events_.size() && events_[i + 1].first == events_[i].first; ++i)
      before += position_key(events_[i].second);
    out->push_back({Entity::kEvents, event_key(events_[i].first, events_[i].second), std::move(before)});
  }
  events_.clear();
}

void State::flush_meta(std::vector<Write>* out) {
  meta.set_chain(chain.bytes());
  std::string value = entity_bytes(meta);
  replace(&meta_digest_, Entity::kMeta, "meta", value);
  v1::MetaState stored = meta;
  stored.set_digest(digest_.bytes());
  out->push_back({Entity::kMeta, "meta", entity_bytes(stored)});
  flushed_position_ = meta.position();
}

std::vector<Write> State::flush() {
  std::vector<Write> out;
  if (meta.position() == flushed_position_) return out;
  out.reserve(dirty_jobs_.size() * 2 + key_changes_.size() + events_.size() + 8);
  flush_jobs(&out);
  flush_nodes_and_queues(&out);
  flush_keys_and_names(&out);
  flush_events(&out);
  flush_meta(&out);
  return out;
}

}  // namespace muster::queue
