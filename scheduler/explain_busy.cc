#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/explain_nodes.h"
#include "scheduler/placement.h"
#include "scheduler/words.h"

namespace muster::scheduler {
namespace {

// The nodes that could hold a member of one task if they were empty, by what keeps them from it.
struct Tally {
  int64_t able = 0;  // all of them
  int64_t draining = 0;
  int64_t down = 0;       // unreachable, lost or quarantined
  int64_t busy = 0;       // in service, with less room than when empty
  int64_t room = 0;       // members that fit now
  Resources free, total;  // of those in service; GPUs of the models that it may use
};

int64_t devices_of(const View& view, const NodeView& node, const TaskRequest& task, bool free_only) {
  const auto& models = task.gpu_models;
  const auto count = std::count_if(node.devices.begin(), node.devices.end(), [&](const DeviceView& device) {
    const std::string& model = view.models()[device.model];
    const bool allowed = models.empty() || std::find(models.begin(), models.end(), model) != models.end();
    return allowed && (device.free || !free_only);
  });
  return free_only ? std::min<int64_t>(count, node.free.gpus) : count;
}

// Both views have the same nodes.
Tally tally(const TaskRequest& task, const View& emptied, const View& free) {
  Tally out;
  for (NodeId id = 0; id < emptied.nodes().size(); ++id) {
    const uint32_t could = room_for(emptied, task, id, task.members);
    if (could == 0) continue;
    const NodeView &total = emptied.nodes()[id], &now = free.nodes()[id];
    ++out.able;
    if (!now.in_service) {
      ++(now.draining ? out.draining : out.down);
      continue;
    }
    const uint32_t room = room_for(free, task, id, task.members);
    out.room += room;
    if (room < could) ++out.busy;
    out.free += {now.free.cpu_milli, now.free.memory_bytes, devices_of(free, now, task, true)};
    out.total += {total.free.cpu_milli, total.free.memory_bytes, devices_of(emptied, total, task, false)};
  }
  return out;
}

// The resource that is short, or of which the pieces are too small.
Kind short_of(const TaskRequest& task, const Tally& tally, bool& pieces) {
  pieces = false;
  for (const Kind kind : kKinds) {
    if (amount(task.each, kind) * task.members > amount(tally.free, kind)) return kind;
  }
  pieces = true;
  return task.each.gpus > 0 ? Kind::kGpus : Kind::kCpu;
}

std::string busy_text(const TaskRequest& task, const Tally& tally) {
  bool pieces = false;
  const Kind kind = short_of(task, tally, pieces);
  const int64_t wanted = amount(task.each, kind) * task.members;
  std::string out = absl::StrCat(tally.busy, " of ", counted(tally.able, "node"));
  if (!task.gpu_models.empty())
    absl::StrAppend(&out, " with gpu_model ", absl::StrJoin(task.gpu_models, "|"));
  absl::StrAppend(&out, tally.able == 1 ? " is" : " are", " busy: ", number(kind, amount(tally.free, kind)),
                  " of ", words(kind, amount(tally.total, kind)), " free, ", number(kind, wanted), " wanted");
  if (pieces) {
    absl::StrAppend(&out, ", in pieces that hold ", tally.room, " of ", counted(task.members, "member"));
  }
  return out;
}

std::vector<Blocker> task_blockers(const Shape& shape, const TaskRequest& task, const Tally& tally) {
  std::vector<Blocker> out;
  const std::string who = shape.tasks.size() > 1 ? absl::StrCat("task ", task.name, ": ") : "";
  const std::string missing = counted(task.members - tally.room, "member");
  if (tally.busy > 0) {
    out.push_back(
        {"NODES_BUSY", who + busy_text(task, tally),
         absl::StrCat("wait until running work ends, or add nodes: room for ", missing, " is missing"),
         tally.busy});
  }
  const auto out_of_service = [&](const char* code, int64_t count, const char* how, const char* remedy) {
    if (count == 0) return;
    out.push_back({code,
                   absl::StrCat(who, count, " of ", counted(tally.able, "node"), " that could hold a member ",
                                count == 1 ? "is " : "are ", how),
                   remedy, count});
  };
  out_of_service("NODES_DRAINING", tally.draining, "draining", "`muster node undrain NAME`, or add nodes");
  out_of_service("NODES_DOWN", tally.down, "unreachable, lost or quarantined",
                 "`muster node ls` shows which; bring them back, or add nodes");
  return out;
}

}  // namespace

std::optional<Blocker> pack_blocker(const Shape& shape, View& view, bool now) {
  if (shape.pack_label.empty() || shape.pack_soft) return std::nullopt;
  int64_t wanted = 0, best = -1;
  std::string where;
  for (const TaskRequest& task : shape.tasks) wanted += task.packed ? task.members : 0;
  const std::vector<Domain>& domains = view.domains(shape.pack_label);
  for (const Domain& domain : domains) {
    int64_t room = 0;
    for (const TaskRequest& task : shape.tasks) {
      int64_t here = 0;
      if (!task.packed) continue;
      for (const NodeId id : domain.nodes) here += room_for(view, task, id, task.members);
      room += std::min<int64_t>(here, task.members);
    }
    if (room > best) where = domain.value;
    best = std::max(best, room);
  }
  Blocker out;
  out.code = "PACK";
  out.count = static_cast<int64_t>(domains.size());
  const std::string& label = shape.pack_label;
  if (domains.empty()) {
    out.text = absl::StrCat("no node carries label ", label, ", by which it is packed");
    out.remedy = absl::StrCat("start agents with --label ", label, "=…, or drop `pack`");
    return out;
  }
  out.text = absl::StrCat("wants all ", counted(wanted, "member"), " under one ", label, "; ",
                          now ? "most free now: " : "the largest: ", where, ", with room for ", best);
  out.remedy = absl::StrCat(now ? "wait, or soften it: " : "soften it: ", "pack: {prefer: ", label, "}");
  return out;
}

std::vector<Blocker> busy_blockers(const Shape& shape, View& emptied, View& free) {
  std::vector<Blocker> out;
  for (const TaskRequest& task : shape.tasks) {
    const Tally found = tally(task, emptied, free);
    if (found.room >= task.members) continue;
    for (Blocker& blocker : task_blockers(shape, task, found)) out.push_back(std::move(blocker));
  }
  if (!out.empty()) return out;
  if (auto pack = pack_blocker(shape, free, true)) return {std::move(*pack)};
  return {{"NODES_BUSY", "each of its tasks alone would fit now, but not all of them together",
           "wait until running work ends, or add nodes", static_cast<int64_t>(free.nodes().size())}};
}

}  // namespace muster::scheduler
