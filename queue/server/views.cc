#include "queue/server/views.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "proto/records.h"

namespace muster::server {
namespace {

using queue::Job;
using queue::State;

struct Reason {
  std::string text;
  bool never = false;
};

Reason reason_of(scheduler::ReasonCode code) {
  switch (code) {
    case scheduler::ReasonCode::kNotTried:
      return {"a planning round is due"};
    case scheduler::ReasonCode::kNoCapacity:
      return {"waits for nodes to become free"};
    case scheduler::ReasonCode::kQueueLimit:
      return {"its queue's limit or quota is reached"};
    case scheduler::ReasonCode::kNeverFits:
      return {"no nodes of this cell could hold it, even empty", true};
    case scheduler::ReasonCode::kNeverQueue:
      return {"it alone is more than its queue may have", true};
    case scheduler::ReasonCode::kBackOff:
      return {"waits a while after its last attempt"};
  }
  return {};
}

std::string waits_for(const v1::JobState& job) {
  std::string out = "waits for job ";
  for (int i = 0; i < job.waits_size() && i < 5; ++i)
    absl::StrAppend(&out, i > 0 ? ", " : "", job.waits(i).job(),
                    job.waits(i).any() ? " to end" : " to succeed");
  if (job.waits_size() > 5) absl::StrAppend(&out, " and ", job.waits_size() - 5, " more");
  return out;
}

bool unreachable(const State& state, const v1::JobState& job) {
  if (!queue::holds_places(job.phase())) return false;
  for (const v1::MemberState& member : job.attempt().members()) {
    const auto node = state.nodes.find(member.node());
    if (node != state.nodes.end() && node->second.state.unreachable() && member.phase() < v1::MEMBER_EXITED)
      return true;
  }
  return false;
}

void add_blocker(v1::ExplainReply* out, const char* code, std::string text, std::string remedy,
                 int64_t count) {
  v1::Blocker& blocker = *out->add_blockers();
  blocker.set_code(code);
  blocker.set_text(std::move(text));
  blocker.set_remedy(std::move(remedy));
  blocker.set_count(count);
}

// What keeps a gang from being looked at by the planner at all.
void explain_waiting(const Job& job, v1::ExplainReply* out) {
  const v1::JobState& state = job.state;
  if (state.held()) {
    const std::string name = job_name(state.id(), state.element());
    add_blocker(out, "HELD", "it is held", absl::StrCat("muster release ", name), 1);
  }
  if (!state.waits().empty())
    add_blocker(out, "DEPENDENCY", waits_for(state), "wait for them, or cancel and submit without `after`",
                state.waits_size());
  if (state.has_array() && state.array_running() > 0 && state.array().live() >= state.array_running())
    add_blocker(out, "ARRAY_RUNNING", absl::StrCat(state.array().live(), " of its elements run, its limit"),
                absl::StrCat("muster update ", state.id(), " array.running=N"), state.array().live());
}

}  // namespace

v1::ExplainReply explain_job(const queue::Engine& engine, const Job& job) {
  v1::ExplainReply out;
  *out.mutable_job()->mutable_state() = job.state;
  const bool waits =
      job.is_array() ? queue::waiting_elements(job.state.array()) > 0 : job.state.phase() == v1::PENDING;
  if (!waits) {
    out.set_summary(absl::StrCat("it is ", v1::Phase_Name(job.state.phase())));
    return out;
  }
  explain_waiting(job, &out);
  const scheduler::Explanation planner = engine.explain(job.key());
  out.set_never(planner.never);
  for (const scheduler::Blocker& blocker : planner.blockers)
    add_blocker(&out, blocker.code.c_str(), blocker.text, blocker.remedy, blocker.count);
  const bool own = out.blockers_size() > static_cast<int>(planner.blockers.size());
  out.set_summary(own && !planner.never ? out.blockers(0).text() : planner.summary);
  return out;
}

void complete_view(const State& state, int64_t wall_ms, v1::JobView* view) {
  view->set_position(state.meta.position());
  view->set_cell_ms(state.meta.cell_ms());
  view->set_wall_ms(wall_ms);
  const v1::JobState& job = view->state();
  if (queue::terminal(job.phase())) return;
  view->set_unreachable(unreachable(state, job));
  const bool waits = job.has_array() ? queue::waiting_elements(job.array()) > 0 : job.phase() == v1::PENDING;
  if (!waits) return;
  if (job.held()) {
    view->set_pending_reason("held");
  } else if (!job.waits().empty()) {
    view->set_pending_reason(waits_for(job));
  } else if (job.has_array() && job.array_running() > 0 && job.array().live() >= job.array_running()) {
    view->set_pending_reason(absl::StrCat(job.array().live(), " of its elements run, its limit"));
  } else if (state.planner.waits({job.id(), job.element()})) {
    const Reason reason = reason_of(state.planner.reason({job.id(), job.element()}));
    view->set_pending_reason(reason.text);
    view->set_never(reason.never);
  }
}

v1::NodeView node_view(const queue::Engine& engine, const queue::NodeEntry& node) {
  v1::NodeView out;
  *out.mutable_state() = node.state;
  out.set_connected(!node.state.unreachable() && !node.state.lost());
  if (const scheduler::Node* known = engine.state().cluster.find(node.state.name())) {
    const scheduler::Resources free = known->free();
    out.set_cpu_free_milli(free.cpu_milli);
    out.set_memory_free_bytes(free.memory_bytes);
    for (const scheduler::DeviceSlot& slot : known->devices) {
      if (!slot.held && !slot.gone) out.add_devices_free(slot.index);
    }
    out.set_members(known->members);
  }
  return out;
}

v1::ListQueuesReply list_queues(const State& state) {
  v1::ListQueuesReply out;
  out.set_position(state.meta.position());
  std::set<std::string> names = {"default"};
  for (const auto& [name, declared] : state.queues) names.insert(name);
  for (const auto& [name, counts] : state.counts) names.insert(name);
  for (const auto& [name, used] : state.usage.all()) names.insert(name);
  for (const std::string& name : names) {
    v1::QueueView& view = *out.add_queues();
    view.mutable_spec()->set_name(name);
    if (const auto declared = state.queues.find(name); declared != state.queues.end()) {
      *view.mutable_spec() = declared->second.spec();
      view.set_declared(true);
    }
    if (const auto used = state.usage.all().find(name); used != state.usage.all().end()) {
      for (const auto& [resource, value] : used->second.used) {
        view.add_used()->set_resource(resource);
        view.mutable_used(view.used_size() - 1)->set_value(value);
      }
    }
    if (const auto counts = state.counts.find(name); counts != state.counts.end()) {
      view.set_pending(static_cast<uint64_t>(counts->second.pending));
      view.set_running(static_cast<uint64_t>(counts->second.running));
    }
  }
  return out;
}

v1::ServerStatus server_status(const queue::Engine& engine, const std::string& trouble) {
  const State& state = engine.state();
  v1::ServerStatus out;
  out.set_cell(engine.options().cell);
  out.set_version(engine.options().version);
  out.set_session(engine.options().session);
  out.set_leader(engine.leader());
  out.set_caught_up(engine.caught_up());
  out.set_position(state.meta.position());
  out.set_chain(state.chain.bytes());
  out.set_term(state.meta.term());
  out.set_refused(state.meta.refused());
  out.set_undecodable(state.meta.undecodable());
  out.set_live_jobs(state.jobs.size());
  out.set_ended_jobs(state.meta.jobs_ended());
  out.set_nodes(state.nodes.size());
  out.set_cell_ms(state.meta.cell_ms());
  out.set_lease_ms(state.meta.lease_ms());
  out.set_node_lost_ms(state.meta.node_lost_ms());
  out.set_trouble(trouble);
  return out;
}

}  // namespace muster::server
