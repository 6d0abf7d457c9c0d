#include "scheduler/admission.h"

#include <string>

namespace muster::scheduler {
namespace {

// The models that it will use for certain, wherever it is placed: of members that name one only.
Amounts certain_models(const Shape& shape) {
  Amounts out;
  for (const TaskRequest& task : shape.tasks) {
    if (task.each.gpus > 0 && task.gpu_models.size() == 1) {
      out[task.gpu_models.front()] += task.each.gpus * task.members * 1000;
    }
  }
  return out;
}

}  // namespace

std::optional<GangFit> try_gang(const Shape& shape, const Resources& total, View& view, const Queues& queues,
                                Rosters* rosters, Failure& failure, uint64_t& steps) {
  failure = Failure{};
  failure.block = queues.blocks(shape.queue, total, certain_models(shape), shape.preemptible);
  if (failure.block) {
    failure.reason = failure.block->never ? ReasonCode::kNeverQueue : ReasonCode::kQueueLimit;
    failure.needs_cluster = false;
    failure.needs_queues = true;
    return std::nullopt;
  }
  PlaceOptions options;
  options.rosters = rosters;
  while (true) {
    const size_t mark = view.mark();
    std::optional<GangFit> fit = place_gang(view, shape, options, steps);
    if (!fit) return std::nullopt;
    const auto block = queues.blocks(shape.queue, total, fit->models, shape.preemptible);
    if (!block) return fit;
    view.roll_back(mark);
    // Not "never", even where it would be for this model: it may fit on another once that is free.
    failure.reason = ReasonCode::kQueueLimit;
    failure.needs_queues = true;
    failure.block = block;
    failure.block->never = false;
    options.avoid.insert(block->resource.substr(std::string("gpu.").size()));
  }
}

}  // namespace muster::scheduler
