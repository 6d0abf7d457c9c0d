#include "scheduler/explain.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/admission.h"
#include "scheduler/explain_nodes.h"
#include "scheduler/placement.h"
#include "scheduler/words.h"

namespace muster::scheduler {
namespace {

Blocker queue_blocker(const QueueBlock& block) {
  const std::string allowed = queue_words(block.resource, block.allowed);
  const std::string wanted = queue_number(block.resource, block.wanted);
  const int64_t needed = block.never ? block.wanted : block.used + block.wanted;
  const std::string raise =
      absl::StrCat("`muster queue set ", block.queue, " ", block.limit ? "limit." : "quota.", block.resource,
                   "=", queue_number(block.resource, needed), "`");
  Blocker out;
  out.count = 1;
  out.code = block.limit ? "QUEUE_LIMIT" : "QUEUE_QUOTA";
  const std::string rule = block.limit
                               ? absl::StrCat("a limit of ", allowed)
                               : absl::StrCat("a quota of ", allowed, " for work that is not preemptible");
  out.text = absl::StrCat(
      "queue ", block.queue, " has ", rule, ": ",
      block.never ? absl::StrCat("it alone wants ", wanted)
                  : absl::StrCat(queue_number(block.resource, block.used), " in use, ", wanted, " wanted"));
  const char* wait = block.never ? "" : "wait until work of the queue ends, ";
  const char* loosen = block.limit ? "" : "submit it with preemptible: true, ";
  out.remedy = absl::StrCat(wait, loosen, *wait == 0 && *loosen == 0 ? "" : "or ", "raise it: ", raise);
  return out;
}

Blocker back_off_blocker(int64_t left_ms) {
  return {"BACK_OFF", absl::StrCat("waits ", duration(left_ms), " more after its last attempt"),
          "none needed: it is tried again by itself", 1};
}

struct Group {
  ReasonCode code;
  std::vector<Blocker> blockers;
};

// Which of several reasons decides.
int weight(ReasonCode code) {
  switch (code) {
    case ReasonCode::kNotTried:
      return 0;
    case ReasonCode::kNoCapacity:
      return 1;
    case ReasonCode::kQueueLimit:
      return 2;
    case ReasonCode::kBackOff:
      return 3;
    case ReasonCode::kNeverQueue:
      return 4;
    case ReasonCode::kNeverFits:
      return 5;
  }
  return 0;
}

// What the nodes say: none there, or they never could, or not now, or nothing.
std::optional<Group> capacity(const Shape& shape, View& emptied, View& free) {
  if (emptied.nodes().empty()) {
    return Group{ReasonCode::kNoCapacity,
                 {{"NO_NODES", "no node has joined yet", "start one with `muster agent`", 0}}};
  }
  uint64_t steps = 0;
  if (never_fits(shape, emptied, steps)) return Group{ReasonCode::kNeverFits, never_blockers(shape, emptied)};
  const size_t mark = free.mark();
  if (!place_gang(free, shape, {}, steps)) {
    return Group{ReasonCode::kNoCapacity, busy_blockers(shape, emptied, free)};
  }
  free.roll_back(mark);
  return std::nullopt;
}

std::string summary_of(const Explanation& out) {
  if (out.blockers.empty()) return "fits now: the next round places it";
  const std::string& text = out.blockers.front().text;
  return out.never ? absl::StrCat("can never run: ", text) : text;
}

}  // namespace

bool never_fits(const Shape& shape, View& emptied, uint64_t& steps) {
  if (emptied.nodes().empty()) return false;
  const size_t mark = emptied.mark();
  bool impossible = false;
  PlaceOptions options;
  options.impossible = &impossible;
  if (place_gang(emptied, shape, options, steps)) emptied.roll_back(mark);
  return impossible;
}

Explanation explain_gang(const PendingGang& gang, const Cluster& cluster, const Queues& queues,
                         int64_t now_ms) {
  const Shape& shape = *gang.shape;
  View free(cluster);
  View emptied = free.emptied();
  std::vector<Group> groups;
  if (auto group = capacity(shape, emptied, free)) groups.push_back(std::move(*group));
  Failure failure;
  uint64_t steps = 0;
  if (!try_gang(shape, shape.total(), free, queues, nullptr, failure, steps) && failure.block) {
    groups.push_back({failure.reason, {queue_blocker(*failure.block)}});
  }
  if (gang.not_before_ms > now_ms) {
    groups.push_back({ReasonCode::kBackOff, {back_off_blocker(gang.not_before_ms - now_ms)}});
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return weight(a.code) > weight(b.code); });
  Explanation out;
  if (!groups.empty()) out.code = groups.front().code;
  out.never = out.code == ReasonCode::kNeverFits || out.code == ReasonCode::kNeverQueue;
  for (Group& group : groups) {
    for (Blocker& blocker : group.blockers) out.blockers.push_back(std::move(blocker));
  }
  out.summary = summary_of(out);
  return out;
}

}  // namespace muster::scheduler
