#include "scheduler/pending.h"

#include <string>

#include "absl/hash/hash.h"
#include "scheduler/check.h"

namespace muster::scheduler {
namespace {

template <typename H>
H mix(H state, const std::vector<LabelRule>& rules) {
  for (const LabelRule& rule : rules) state = H::combine(std::move(state), rule.label, rule.values);
  return H::combine(std::move(state), rules.size());
}

struct Content {
  const Shape& shape;
  template <typename H>
  friend H AbslHashValue(H state, const Content& content) {
    const Shape& shape = content.shape;
    for (const TaskRequest& task : shape.tasks) {
      state = H::combine(std::move(state), task.name, task.members, task.each.cpu_milli,
                         task.each.memory_bytes, task.each.gpus, task.gpu_models, task.per_node, task.packed);
      state = mix(mix(mix(std::move(state), task.require), task.exclude), task.prefer);
    }
    return H::combine(std::move(state), shape.queue, shape.priority, shape.preemptible, shape.tasks.size(),
                      shape.pack_label, shape.pack_soft);
  }
};

}  // namespace

size_t PendingIndex::ByContent::operator()(const Shape* shape) const {
  return absl::Hash<Content>{}({*shape});
}

ShapeState* PendingIndex::intern(const std::shared_ptr<const Shape>& shape) {
  const auto known = by_pointer_.find(shape.get());
  if (known != by_pointer_.end()) return known->second;
  std::unique_ptr<ShapeState>& entry = shapes_[shape.get()];
  if (entry == nullptr) {
    entry = std::make_unique<ShapeState>();
    entry->shape = shape;
    by_pointer_[shape.get()] = entry.get();
  }
  return entry.get();
}

void PendingIndex::add(const PendingGang& gang) {
  check(gang.shape != nullptr, "a pending gang without a shape");
  ShapeState* shape = intern(gang.shape);
  ++shape->gangs;  // before the old one goes: it may be the last of this shape
  const auto [it, added] = gangs_.try_emplace(gang.key);
  if (!added) erase(gang.key, it->second);
  it->second = {shape, gang.line, gang.not_before_ms, gang.copies, gang.not_before_ms > now_ms_};
  if (it->second.backing_off) {
    backing_off_.insert({gang.not_before_ms, gang.key});
  } else {
    shape->ready.insert({gang.line, gang.key});
  }
  relist(*shape);
}

void PendingIndex::remove(const GangKey& key) {
  const auto it = gangs_.find(key);
  if (it == gangs_.end()) return;
  const Gang gang = it->second;
  gangs_.erase(it);
  erase(key, gang);
}

const PendingIndex::Gang* PendingIndex::find(const GangKey& key) const {
  const auto it = gangs_.find(key);
  return it == gangs_.end() ? nullptr : &it->second;
}

void PendingIndex::erase(const GangKey& key, const Gang& gang) {
  ShapeState& shape = *gang.shape;
  if (gang.backing_off) {
    backing_off_.erase({gang.not_before_ms, key});
  } else {
    shape.ready.erase({gang.line, key});
  }
  if (--shape.gangs > 0) {
    relist(shape);
    return;
  }
  unlist(shape);
  by_pointer_.erase(shape.shape.get());
  const std::shared_ptr<const Shape> content = shape.shape;  // outlives the lookup
  shapes_.erase(content.get());
}

void PendingIndex::wake(int64_t now_ms) {
  now_ms_ = now_ms;
  while (!backing_off_.empty() && backing_off_.begin()->first <= now_ms) {
    const GangKey key = backing_off_.begin()->second;
    backing_off_.erase(backing_off_.begin());
    Gang& gang = gangs_.at(key);
    gang.backing_off = false;
    gang.shape->ready.insert({gang.line, key});
    relist(*gang.shape);
  }
}

void PendingIndex::fail(ShapeState& shape) {
  unlist(shape);
  shape.failed = true;
  relist(shape);
}

void PendingIndex::reopen(ShapeState& shape) {
  unlist(shape);
  shape.failed = false;
  shape.provisional = false;
  shape.reason = ReasonCode::kNotTried;
  relist(shape);
}

void PendingIndex::relist(ShapeState& shape) {
  const bool belongs = shape.failed || !shape.ready.empty();
  if (belongs == shape.listed) return;
  if (!belongs) {
    unlist(shape);
    return;
  }
  std::vector<ShapeState*>& list = shape.failed ? failed_ : open_;
  shape.listed_at = list.size();
  shape.listed = true;
  list.push_back(&shape);
}

void PendingIndex::unlist(ShapeState& shape) {
  if (!shape.listed) return;
  std::vector<ShapeState*>& list = shape.failed ? failed_ : open_;
  list[shape.listed_at] = list.back();
  list[shape.listed_at]->listed_at = shape.listed_at;
  list.pop_back();
  shape.listed = false;
}

}  // namespace muster::scheduler
