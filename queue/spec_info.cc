#include "queue/spec_info.h"

#include "queue/state.h"

namespace muster::queue {
namespace {

std::vector<scheduler::LabelRule> rules(const google::protobuf::RepeatedPtrField<v1::LabelRule>& from) {
  std::vector<scheduler::LabelRule> out;
  for (const v1::LabelRule& rule : from)
    out.push_back({rule.label(), {rule.values().begin(), rule.values().end()}});
  return out;
}

scheduler::TaskRequest request_of(const v1::Task& task) {
  scheduler::TaskRequest out;
  out.name = task.name();
  out.members = task.replicas();
  out.each = {task.resources().cpu_milli(), task.resources().memory_bytes(),
              task.resources().gpu_milli() / 1000};
  out.gpu_models.assign(task.gpu_model().begin(), task.gpu_model().end());
  out.require = rules(task.require());
  out.exclude = rules(task.exclude());
  out.prefer = rules(task.prefer());
  out.per_node = task.per_node();
  out.packed = !task.pack_none();
  return out;
}

}  // namespace

v1::JobSpec SpecInfo::parse() const {
  v1::JobSpec spec;
  spec.ParseFromString(bytes);
  return spec;
}

uint32_t SpecInfo::task_of(uint32_t rank) const {
  uint32_t task = 0;
  while (task + 1 < tasks.size() && rank >= tasks[task + 1].first_rank) ++task;
  return task;
}

std::string spec_bytes(const v1::JobSpec& spec) {
  return entity_bytes(spec);
}

std::shared_ptr<const SpecInfo> make_spec_info(const v1::JobSpec& spec, std::string bytes) {
  auto info = std::make_shared<SpecInfo>();
  info->bytes = std::move(bytes);
  info->digest = StateDigest::of_text(info->bytes);
  auto shape = std::make_shared<scheduler::Shape>();
  shape->queue = spec.queue();
  shape->priority = spec.priority();
  shape->preemptible = spec.preemptible();
  shape->pack_label = spec.pack().label();
  shape->pack_soft = spec.pack().soft();
  for (const v1::Task& task : spec.tasks()) {
    if (task.name() == spec.success()) info->success_task = static_cast<int>(info->tasks.size());
    info->tasks.push_back({info->members, task.replicas(), task.on_failure()});
    info->members += task.replicas();
    shape->tasks.push_back(request_of(task));
  }
  if (spec.success().empty() || spec.success() == "all") info->success_task = -1;
  info->shape = std::move(shape);
  info->retries_own = spec.retries().own();
  info->retries_infrastructure = spec.retries().has_infrastructure() ? spec.retries().infrastructure() : 10;
  info->retries_start = spec.retries().has_start() ? spec.retries().start() : 5;
  info->start_limit_ms = spec.has_start_limit_ms() ? spec.start_limit_ms() : 600'000;
  info->grace_ms = spec.has_grace_ms() ? spec.grace_ms() : 30'000;
  info->stop_after_ms = spec.on_disconnect().stop_after_ms();
  info->array_count = spec.array().count();
  return info;
}

std::shared_ptr<const scheduler::Shape> shape_with(const scheduler::Shape& shape, const std::string& queue,
                                                   int32_t priority) {
  auto out = std::make_shared<scheduler::Shape>(shape);
  out->queue = queue;
  out->priority = priority;
  return out;
}

}  // namespace muster::queue
