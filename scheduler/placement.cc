#include "scheduler/placement.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "absl/numeric/int128.h"
#include "scheduler/attempt.h"
#include "scheduler/search.h"

namespace muster::scheduler {
namespace {

// Parts in a million of the resource that it takes most of.
int64_t dominant_share(const TaskRequest& task, const Resources& total, int64_t times) {
  const auto share = [times](int64_t each, int64_t of) -> int64_t {
    if (each == 0) return 0;
    if (of == 0) return std::numeric_limits<int64_t>::max();
    const absl::int128 parts = absl::int128(each) * times * 1'000'000 / of;
    const absl::int128 most = std::numeric_limits<int64_t>::max();
    return static_cast<int64_t>(parts < most ? parts : most);
  };
  return std::max({share(task.each.cpu_milli, total.cpu_milli),
                   share(task.each.memory_bytes, total.memory_bytes), share(task.each.gpus, total.gpus)});
}

using Orders = std::vector<std::vector<size_t>>;

void add_order(Orders& orders, std::vector<size_t> order) {
  if (std::find(orders.begin(), orders.end(), order) == orders.end()) orders.push_back(std::move(order));
}

// The orders to try tasks in, the likeliest first: the most demanding task; the largest member; the same with
// what is bound to a domain first; and last the other way round.
Orders orders_of(const Shape& shape, const Resources& total) {
  std::vector<size_t> spec(shape.tasks.size());
  for (size_t i = 0; i < spec.size(); ++i) spec[i] = i;
  if (spec.size() < 2) return {spec};
  Orders orders;
  const auto sorted = [&](const auto& key) {
    std::vector<size_t> out = spec;
    std::stable_sort(out.begin(), out.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
    return out;
  };
  const auto by_task = [&](size_t i) {
    return dominant_share(shape.tasks[i], total, shape.tasks[i].members);
  };
  const auto by_member = [&](size_t i) { return dominant_share(shape.tasks[i], total, 1); };
  const auto bound = [&](std::vector<size_t> order) {
    std::stable_partition(order.begin(), order.end(), [&](size_t i) { return shape.tasks[i].packed; });
    return order;
  };
  const std::vector<size_t> demanding = sorted(by_task), large = sorted(by_member);
  if (!shape.pack_label.empty()) add_order(orders, bound(demanding));
  add_order(orders, demanding);
  add_order(orders, large);
  add_order(orders, sorted([&](size_t i) { return shape.tasks[i].each.gpus; }));
  add_order(orders, std::vector<size_t>(demanding.rbegin(), demanding.rend()));
  return orders;
}

// The domains in the order to be tried: the least free first.
std::vector<const Domain*> domains_by_free(View& view, const std::string& label, uint64_t& steps) {
  std::vector<std::tuple<int64_t, int64_t, const Domain*>> free;
  for (const Domain& domain : view.domains(label)) {
    int64_t gpus = 0, cpu = 0;
    for (NodeId id : domain.nodes) {
      ++steps;
      gpus += view.nodes()[id].free.gpus;
      cpu += view.nodes()[id].free.cpu_milli;
    }
    free.emplace_back(gpus, cpu, &domain);
  }
  // Domains lie in one vector, by value: their addresses break ties as their values would.
  std::sort(free.begin(), free.end());
  std::vector<const Domain*> out;
  for (const auto& entry : free) out.push_back(std::get<2>(entry));
  return out;
}

// One domain, or all nodes: the orders, then the search.
Verdict place_within(Attempt& attempt, const Orders& orders, const Domain* domain) {
  const bool several = attempt.shape().tasks.size() > 1;
  if ((several || domain != nullptr) && !attempt.may_hold(domain)) return Verdict::kNever;
  for (const std::vector<size_t>& order : orders) {
    if (attempt.place(order, domain)) return Verdict::kFits;
  }
  return several ? search(attempt, domain) : Verdict::kNever;
}

}  // namespace

bool has_one_of(const Labels& labels, const LabelRule& rule) {
  const auto it = labels.find(rule.label);
  return it != labels.end() &&
         std::find(rule.values.begin(), rule.values.end(), it->second) != rule.values.end();
}

bool labels_admit(const TaskRequest& task, const Labels& labels) {
  for (const LabelRule& rule : task.require) {
    if (!has_one_of(labels, rule)) return false;
  }
  for (const LabelRule& rule : task.exclude) {
    if (has_one_of(labels, rule)) return false;
  }
  return true;
}

uint32_t room_for(const View& view, const TaskRequest& task, NodeId node, uint32_t wanted) {
  return room_on(view.nodes()[node], task, Models(view, task, {}), wanted);
}

std::optional<GangFit> place_gang(View& view, const Shape& shape, const PlaceOptions& options,
                                  uint64_t& steps) {
  Attempt attempt(view, shape, options, steps);
  const Orders orders = orders_of(shape, view.total());
  bool certain = true;
  const auto fits = [&](const Domain* domain) {
    const Verdict verdict = place_within(attempt, orders, domain);
    certain = certain && verdict != Verdict::kUndecided;
    return verdict == Verdict::kFits;
  };
  const bool bound =
      !shape.pack_label.empty() && std::any_of(shape.tasks.begin(), shape.tasks.end(),
                                               [](const TaskRequest& task) { return task.packed; });
  if (bound) {
    for (const Domain* domain : domains_by_free(view, shape.pack_label, steps)) {
      if (fits(domain)) return attempt.fit();
    }
  }
  if ((!bound || shape.pack_soft) && fits(nullptr)) return attempt.fit();
  if (options.impossible != nullptr) *options.impossible = certain;
  return std::nullopt;
}

}  // namespace muster::scheduler
