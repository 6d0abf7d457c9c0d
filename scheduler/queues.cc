#include "scheduler/queues.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/check.h"

namespace muster::scheduler {
namespace {

constexpr int64_t kDevice = 1000;  // thousandths

// "a/b/c", then "a/b", then "a".
template <typename Visit>
void each_level(const std::string& queue, const Visit& visit) {
  size_t length = queue.size();
  while (true) {
    visit(queue.substr(0, length));
    const size_t slash = length == 0 ? std::string::npos : queue.rfind('/', length - 1);
    if (slash == std::string::npos) return;
    length = slash;
  }
}

// Zero amounts are left out, so that equal use is equal maps.
template <typename Visit>
void each_amount(const Resources& total, const Amounts& models, const Visit& visit) {
  static const std::string kCpu = "cpu", kMemory = "memory", kGpu = "gpu";
  if (total.cpu_milli != 0) visit(kCpu, total.cpu_milli);
  if (total.memory_bytes != 0) visit(kMemory, total.memory_bytes);
  if (total.gpus != 0) visit(kGpu, total.gpus * kDevice);
  for (const auto& [model, amount] : models) {
    if (amount != 0 && !model.empty()) visit(absl::StrCat("gpu.", model), amount);
  }
}

int64_t amount_in(const Amounts& amounts, const std::string& resource) {
  const auto it = amounts.find(resource);
  return it == amounts.end() ? 0 : it->second;
}

void take(Amounts& amounts, const std::string& resource, int64_t amount) {
  amounts[resource] += amount;
}

void put_back(Amounts& amounts, const std::string& resource, int64_t amount, const std::string& queue) {
  const auto it = amounts.find(resource);
  if (it == amounts.end() || it->second < amount) {
    defect(absl::StrCat("gives back ", amount, " of ", resource, " in queue ", queue, ", which uses ",
                        amount_in(amounts, resource)));
  }
  it->second -= amount;
  if (it->second == 0) amounts.erase(it);
}

// A queue that nobody declared and nobody uses is as good as absent.
bool counts(const Queue& queue) {
  return queue.declared || !queue.used.empty();
}

}  // namespace

void Queues::set(const std::string& name, uint32_t weight, Amounts quota, Amounts limit) {
  Queue& queue = queues_[name];
  queue.declared = true;
  queue.weight = weight;
  queue.quota = std::move(quota);
  queue.limit = std::move(limit);
  ++freed_;
  ++ruled_;
}

void Queues::remove(const std::string& name) {
  const auto it = queues_.find(name);
  if (it == queues_.end()) return;
  Queue rest;
  rest.used = std::move(it->second.used);
  rest.used_not_preemptible = std::move(it->second.used_not_preemptible);
  it->second = std::move(rest);
  if (!counts(it->second)) queues_.erase(it);
  ++freed_;
  ++ruled_;
}

std::optional<QueueBlock> Queues::blocks(const std::string& queue, const Resources& total,
                                         const Amounts& models, bool preemptible) const {
  std::optional<QueueBlock> found;
  const auto test = [&](const std::string& name, bool limit, const Amounts& rule, const Amounts& used,
                        const std::string& resource, int64_t wanted) {
    const auto allowed = rule.find(resource);
    if (allowed == rule.end() || (found && found->never)) return;
    const int64_t in_use = amount_in(used, resource);
    const bool never = wanted > allowed->second;
    if (in_use + wanted <= allowed->second || (found && !never)) return;
    found = QueueBlock{name, limit, resource, allowed->second, in_use, wanted, never};
  };
  each_level(queue, [&](const std::string& name) {
    const auto it = queues_.find(name);
    if (it == queues_.end() || (it->second.limit.empty() && it->second.quota.empty())) return;
    const Queue& level = it->second;
    each_amount(total, models, [&](const std::string& resource, int64_t wanted) {
      test(name, true, level.limit, level.used, resource, wanted);
      if (!preemptible) test(name, false, level.quota, level.used_not_preemptible, resource, wanted);
    });
  });
  return found;
}

void Queues::use(const std::string& queue, const Resources& total, const Amounts& models, bool preemptible) {
  each_level(queue, [&](const std::string& name) {
    Queue& level = queues_[name];
    each_amount(total, models, [&](const std::string& resource, int64_t amount) {
      take(level.used, resource, amount);
      if (!preemptible) take(level.used_not_preemptible, resource, amount);
    });
  });
}

void Queues::give_back(const std::string& queue, const Resources& total, const Amounts& models,
                       bool preemptible) {
  each_level(queue, [&](const std::string& name) {
    const auto it = queues_.find(name);
    if (it == queues_.end()) {
      each_amount(total, models, [&](const std::string&, int64_t) {
        defect(absl::StrCat("gives back in queue ", name, ", which nothing uses"));
      });
      return;
    }
    each_amount(total, models, [&](const std::string& resource, int64_t amount) {
      put_back(it->second.used, resource, amount, name);
      if (!preemptible) put_back(it->second.used_not_preemptible, resource, amount, name);
    });
    if (!counts(it->second)) queues_.erase(it);
  });
  ++freed_;
}

bool Queues::operator==(const Queues& other) const {
  auto mine = queues_.begin();
  auto theirs = other.queues_.begin();
  while (true) {
    while (mine != queues_.end() && !counts(mine->second)) ++mine;
    while (theirs != other.queues_.end() && !counts(theirs->second)) ++theirs;
    if (mine == queues_.end() || theirs == other.queues_.end()) break;
    if (*mine != *theirs) return false;
    ++mine;
    ++theirs;
  }
  return mine == queues_.end() && theirs == other.queues_.end();
}

}  // namespace muster::scheduler
