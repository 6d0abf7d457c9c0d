// The orders' contents: all that an agent needs to run one member.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "queue/engine_impl.h"

namespace muster::queue {
namespace {

// The parameters of one element of a sweep: the last one changes fastest.
std::vector<std::pair<std::string, std::string>> sweep_values(const v1::Array& array, uint32_t index) {
  std::vector<std::pair<std::string, std::string>> out;
  for (int i = array.sweep_size() - 1; i >= 0; --i) {
    const v1::SweepValues& values = array.sweep(i);
    const auto count = static_cast<uint32_t>(std::max(1, values.values_size()));
    out.emplace_back(values.parameter(), values.values(static_cast<int>(index % count)));
    index /= count;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

bool barrier_passed(const Job& job) {
  const auto& members = job.state.attempt().members();
  return std::all_of(members.begin(), members.end(),
                     [](const auto& m) { return m.phase() != v1::MEMBER_PLACED; });
}

v1::MemberRef member_ref(const Job& job, uint32_t rank) {
  v1::MemberRef ref;
  ref.set_job(job.state.id());
  ref.set_element(job.state.element());
  ref.set_attempt(job.state.attempt().number());
  ref.set_rank(rank);
  *ref.mutable_fence() = job.state.attempt().fence();
  return ref;
}

v1::PrepareOrder prepare_order(const State& state, const Job& job, const v1::JobSpec& spec, uint32_t rank) {
  const v1::MemberState& member = job.state.attempt().members(static_cast<int>(rank));
  const uint32_t task = job.info->task_of(rank);
  v1::PrepareOrder order;
  *order.mutable_member() = member_ref(job, rank);
  *order.mutable_task() = spec.tasks(static_cast<int>(task));
  order.set_task_index(rank - job.info->tasks[task].first_rank);
  *order.mutable_devices() = member.devices();
  for (uint32_t device : member.devices()) {
    for (const v1::Device& known : state.nodes.at(member.node()).state.description().devices()) {
      if (known.index() == device) order.add_device_uuids(known.uuid());
    }
  }
  auto& env = *order.mutable_env();
  env = order.task().env();
  if (job.state.element() != 0) {
    for (const auto& [parameter, value] : sweep_values(spec.array(), job.state.element() - 1)) {
      env[parameter] = value;
      for (std::string& word : *order.mutable_task()->mutable_command())
        word = absl::StrReplaceAll(word, {{absl::StrCat("{", parameter, "}"), value}});
    }
  }
  order.set_workdir(spec.workdir());
  order.set_grace_ms(job.info->grace_ms);
  order.set_signal(spec.signal());
  order.set_stop_after_ms(job.info->stop_after_ms);
  order.set_job_name(spec.name());
  order.set_user(spec.user());
  order.set_world_size(job.info->members);
  return order;
}

v1::StartOrder start_order(const Job& job, const v1::JobSpec& spec, uint32_t rank) {
  const v1::AttemptState& attempt = job.state.attempt();
  v1::StartOrder order;
  *order.mutable_member() = member_ref(job, rank);
  order.set_run(attempt.members(static_cast<int>(rank)).run());
  order.set_master_addr(attempt.members(0).address());
  order.set_master_port(attempt.members(0).port());
  for (const v1::MemberState& member : attempt.members())
    order.add_hosts(absl::StrCat(member.address(), ":", member.port()));
  if (job.state.time_limit_ms() > 0)
    order.set_end_wall_ms(attempt.placed_wall_ms() + job.state.time_limit_ms());
  for (const v1::Task& task : spec.tasks()) {
    order.add_task_names(task.name());
    order.add_task_replicas(task.replicas());
  }
  return order;
}

}  // namespace muster::queue
