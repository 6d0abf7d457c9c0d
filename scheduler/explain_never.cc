#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/explain_nodes.h"
#include "scheduler/placement.h"
#include "scheduler/words.h"

namespace muster::scheduler {
namespace {

constexpr size_t kValuesShown = 8;

std::string listed(const std::set<std::string>& values) {
  std::vector<std::string> shown(values.begin(), values.end());
  const size_t more = shown.size() > kValuesShown ? shown.size() - kValuesShown : 0;
  shown.resize(shown.size() - more);
  return absl::StrCat(absl::StrJoin(shown, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

// One task against the emptied nodes, in the order in which nodes drop out: labels, models, size, number.
class TaskAnalysis {
 public:
  TaskAnalysis(const Shape& shape, const TaskRequest& task, const View& emptied)
      : task_(task),
        view_(emptied),
        who_(shape.tasks.size() > 1 ? absl::StrCat("task ", task.name, ": ") : "") {
    for (NodeId id = 0; id < view_.nodes().size(); ++id) {
      if (labels_admit(task_, view_.nodes()[id].labels())) admitted_.push_back(id);
    }
    labelled_ = !task_.require.empty() || !task_.exclude.empty();
  }

  std::vector<Blocker> run() const {
    if (admitted_.empty()) return labels();
    std::vector<Blocker> out;
    if (task_.each.gpus > 0 && largest(Kind::kGpus) == 0) {
      out.push_back(no_model());
      return out;
    }
    for (const Kind kind : kKinds) {
      if (amount(task_.each, kind) > largest(kind)) out.push_back(member_too_big(kind));
    }
    if (!out.empty()) return out;
    if (auto blocker = number_of_members()) out.push_back(std::move(*blocker));
    return out;
  }

 private:
  Blocker make(const std::string& code, const std::string& text, const std::string& remedy) const {
    return {code, who_ + text, remedy, static_cast<int64_t>(view_.nodes().size())};
  }
  std::string nodes(bool many = false) const {
    std::string out = absl::StrCat(many ? "nodes" : "node", labelled_ ? " that its labels admit" : "");
    if (!task_.gpu_models.empty())
      absl::StrAppend(&out, " with gpu_model ", absl::StrJoin(task_.gpu_models, "|"));
    return out;
  }

  bool allowed(const DeviceView& device) const {
    const auto& models = task_.gpu_models;
    return models.empty() ||
           std::find(models.begin(), models.end(), view_.models()[device.model]) != models.end();
  }
  int64_t on(NodeId id, Kind kind) const {
    const NodeView& node = view_.nodes()[id];
    if (kind == Kind::kCpu) return node.free.cpu_milli;
    if (kind == Kind::kMemory) return node.free.memory_bytes;
    const auto count = std::count_if(node.devices.begin(), node.devices.end(),
                                     [&](const DeviceView& device) { return allowed(device); });
    return std::min<int64_t>(count, node.free.gpus);
  }
  int64_t largest(Kind kind) const {
    int64_t out = 0;
    for (const NodeId id : admitted_) out = std::max(out, on(id, kind));
    return out;
  }
  int64_t all(Kind kind) const {
    int64_t out = 0;
    for (const NodeId id : admitted_) out += on(id, kind);
    return out;
  }
  int64_t room(const TaskRequest& task, int64_t* holders = nullptr) const {
    int64_t out = 0;
    for (const NodeId id : admitted_) {
      const uint32_t here = room_for(view_, task, id, task.members);
      out += here;
      if (holders != nullptr && here > 0) ++*holders;
    }
    return out;
  }

  std::vector<Blocker> labels() const {
    std::vector<Blocker> out;
    for (const LabelRule& rule : task_.require) {
      TaskRequest alone;
      alone.require = {rule};
      const bool some = std::any_of(view_.nodes().begin(), view_.nodes().end(),
                                    [&](const NodeView& node) { return labels_admit(alone, node.labels()); });
      if (!some) out.push_back(missing_label(rule));
    }
    if (!out.empty()) return out;
    if (task_.require.empty()) {
      return {make("LABEL", absl::StrCat("`not` excludes all nodes: ", rules(task_.exclude)),
                   "relax `not`, or add nodes without these labels")};
    }
    std::string text = absl::StrCat("no node satisfies all of its labels together: ", rules(task_.require));
    if (!task_.exclude.empty()) absl::StrAppend(&text, ", not ", rules(task_.exclude));
    return {make("LABEL", text, "relax one of `require` and `not`, or add a node that satisfies all")};
  }
  static std::string rules(const std::vector<LabelRule>& rules) {
    std::vector<std::string> out;
    for (const LabelRule& rule : rules)
      out.push_back(absl::StrCat(rule.label, "=", absl::StrJoin(rule.values, "|")));
    return absl::StrJoin(out, ", ");
  }
  Blocker missing_label(const LabelRule& rule) const {
    std::set<std::string> values, names;
    for (const NodeView& node : view_.nodes()) {
      for (const auto& [name, value] : node.labels()) {
        names.insert(name);
        if (name == rule.label) values.insert(value);
      }
    }
    const std::string wanted = absl::StrCat(rule.label, "=", absl::StrJoin(rule.values, "|"));
    if (values.empty()) {
      const std::string near = nearest(rule.label, {names.begin(), names.end()});
      const std::string there = names.empty() ? "nodes carry no labels" : "labels there: " + listed(names);
      return make("LABEL", absl::StrCat("no node carries label ", rule.label, " (", there, ")"),
                  absl::StrCat(near.empty() ? "" : absl::StrCat("the nearest is ", near, "; or "),
                               "start an agent with --label ", rule.label, "=", rule.values.front()));
    }
    const std::string near = nearest(rule.values.front(), {values.begin(), values.end()});
    return make("LABEL",
                absl::StrCat("no node carries label ", wanted, " (values there: ", listed(values), ")"),
                absl::StrCat("the nearest is ", rule.label, "=", near, "; or start an agent with --label ",
                             rule.label, "=", rule.values.front()));
  }

  Blocker no_model() const {
    std::map<std::string, int64_t> there;
    for (const NodeId id : admitted_) {
      for (const DeviceView& device : view_.nodes()[id].devices) ++there[view_.models()[device.model]];
    }
    if (there.empty()) {
      return make("GPU_MODEL",
                  absl::StrCat("each member wants ", words(Kind::kGpus, task_.each.gpus), "; no ",
                               labelled_ ? "node that its labels admit" : "node", " has any"),
                  "add a node with GPUs (`muster agent --gpu N --gpu-model MODEL` declares them)");
    }
    std::vector<std::string> models, counts;
    for (const auto& [model, count] : there) {
      models.push_back(model);
      counts.push_back(absl::StrCat(model, " ×", count));
    }
    const std::string wanted = absl::StrJoin(task_.gpu_models, "|");
    return make("GPU_MODEL",
                absl::StrCat("no ", labelled_ ? "node that its labels admit" : "node", " has gpu_model ",
                             wanted, " (there are: ", absl::StrJoin(counts, ", "), ")"),
                absl::StrCat("the nearest is ", nearest(wanted, models), "; or add nodes with ", wanted));
  }

  Blocker member_too_big(Kind kind) const {
    const int64_t most = largest(kind);
    return make(
        "TOO_BIG",
        absl::StrCat("each member wants ", words(kind, amount(task_.each, kind)), "; the largest ", nodes(),
                     " has ", number(kind, most)),
        absl::StrCat("ask for at most ", words(kind, most), " for each member, or add a larger node"));
  }

  // Why not so many, although each member alone is not too big in any one resource.
  std::optional<Blocker> number_of_members() const {
    int64_t holders = 0;
    const int64_t fit = room(task_, &holders);
    if (fit >= task_.members) return std::nullopt;
    if (holders == 0) return nowhere_together();
    TaskRequest loose = task_;
    loose.per_node = 0;
    if (room(loose) >= task_.members) {
      return make(
          "PER_NODE",
          absl::StrCat("wants ", counted(task_.members, "member"), ", at most ", task_.per_node,
                       " on a node; only ", counted(holders, "node"), " could hold any, ", fit, " in all"),
          absl::StrCat("raise per_node, ask for at most ", counted(fit, "member"), ", or add nodes"));
    }
    const std::string fewer = absl::StrCat("ask for at most ", counted(fit, "member"), ", or add nodes");
    for (const Kind kind : kKinds) {
      const int64_t each = amount(task_.each, kind);
      if (each * task_.members <= all(kind)) continue;
      return make("TOO_BIG",
                  absl::StrCat("wants ", total(kind), "; all ", nodes(true), " together have ",
                               number(kind, all(kind))),
                  fewer);
    }
    return make("TOO_BIG",
                absl::StrCat("wants ", counted(task_.members, "member"), "; all ", nodes(true),
                             " together have room for ", fit),
                fewer);
  }
  std::string total(Kind kind) const {
    const int64_t each = amount(task_.each, kind);
    if (task_.members == 1) return words(kind, each);
    return absl::StrCat(task_.members, "×", number(kind, each), " = ", words(kind, each * task_.members));
  }
  Blocker nowhere_together() const {
    std::vector<std::string> parts;
    for (const Kind kind : kKinds) {
      if (amount(task_.each, kind) > 0) parts.push_back(words(kind, amount(task_.each, kind)));
    }
    return make("TOO_BIG",
                absl::StrCat("each member wants ", absl::StrJoin(parts, " and "), "; no ", nodes(),
                             " has these together"),
                "ask for less of one for each member, or add a larger node");
  }

  const TaskRequest& task_;
  const View& view_;
  std::string who_;
  std::vector<NodeId> admitted_;
  bool labelled_ = false;
};

}  // namespace

std::vector<Blocker> never_blockers(const Shape& shape, View& emptied) {
  std::vector<Blocker> out;
  for (const TaskRequest& task : shape.tasks) {
    for (Blocker& blocker : TaskAnalysis(shape, task, emptied).run()) out.push_back(std::move(blocker));
  }
  if (!out.empty()) return out;
  if (auto pack = pack_blocker(shape, emptied, false)) return {std::move(*pack)};
  return {{"TOO_BIG",
           "each of its tasks alone would fit, but not all of them together on the nodes that exist",
           "ask for less, or add nodes", static_cast<int64_t>(emptied.nodes().size())}};
}

}  // namespace muster::scheduler
