// What a scenario makes happen: submissions, what people ask of jobs and queues, what befalls nodes and
// servers.
#include "absl/strings/str_cat.h"
#include "queue/validate.h"
#include "tools/sim/world.h"

namespace muster::sim {

void World::schedule() {
  for (const v1::QueueSpec& queue : scenario_.queues) {
    v1::Record body;
    *body.mutable_queue_set()->mutable_queue() = queue;
    ask(std::move(body), "");
  }
  rest();
  for (const ScenarioEvent& event : scenario_.events)
    at(kOrigin + event.at_ms, [this, &event] { happen(event); });
  for (const ScenarioJob& job : scenario_.jobs) {
    by_name_[job.spec.name()] = &job;
    at(kOrigin + job.at_ms, [this, &job] { submit(job, job.spec.name(), 0); });
  }
}

void World::submit(const ScenarioJob& job, const std::string& key, uint64_t retry_of) {
  v1::Record body;
  body.mutable_submitted()->set_key(key);
  body.mutable_submitted()->set_retry_of(retry_of);
  *body.mutable_submitted()->mutable_spec() = job.spec;
  ask(std::move(body), job.spec.name());
}

void World::ask(v1::Record body, std::string job) {
  const uint64_t request = next_request_++;
  asked_[request] = {body, std::move(job)};
  queue::Output out;
  engine_->request(request, std::move(body), now_ms_, &out);
  take(std::move(out));
}

void World::answered(uint64_t request, const queue::Outcome& outcome) {
  const auto it = asked_.find(request);
  if (it == asked_.end()) return;
  const std::string job = std::move(it->second.job);
  asked_.erase(it);
  if (job.empty()) return;
  if (!outcome.ok()) {
    refused_[job] = outcome.message;
    return;
  }
  id_of_[job] = outcome.job;
  jobs_[outcome.job] = by_name_.at(job);
}

void World::wrong(const ScenarioEvent& event, const std::string& why) {
  if (bad_.ok())
    bad_ = absl::InvalidArgumentError(
        absl::StrCat("the event '", event.what, "' at ", event.at_ms / 1000.0, " s: ", why));
}

void World::happen(const ScenarioEvent& event) {
  if (event.what == "queue") {
    v1::Record body;
    v1::QueueSpec& queue = *body.mutable_queue_set()->mutable_queue();
    queue.set_name(event.queue.name());
    queue.set_weight(1);
    const auto known = engine_->state().queues.find(event.queue.name());
    if (known != engine_->state().queues.end()) queue = known->second.spec();
    // What the event doesn't name stays as it is.
    if (event.queue.weight() != 0) queue.set_weight(event.queue.weight());
    if (event.queue.quota_size() > 0) *queue.mutable_quota() = event.queue.quota();
    if (event.queue.limit_size() > 0) *queue.mutable_limit() = event.queue.limit();
    ask(std::move(body), "");
  } else if (event.what == "restart-server") {
    if (event.step == 0) {
      kill_ = true;
    } else {
      kill_at_step_ = steps_ + event.step;
    }
  } else if (event.what == "add-node") {
    if (agents_.knows(event.node.name))
      return wrong(event, absl::StrCat("there is a node '", event.node.name, "'"));
    agents_.add(event.node);
  } else if (event.what == "cancel" || event.what == "hold" || event.what == "release" ||
             event.what == "requeue" || event.what == "retry" || event.what == "update") {
    happen_to_job(event);
  } else {
    happen_to_node(event);
  }
}

void World::happen_to_node(const ScenarioEvent& event) {
  const std::string& node = event.subject;
  if (!agents_.knows(node)) return wrong(event, absl::StrCat("there is no node '", node, "'"));
  if (event.what == "crash") return agents_.crash(node);
  if (event.what == "partition") return agents_.partition(node);
  if (event.what == "return" || event.what == "heal") return agents_.come_back(node);
  if (event.what == "shrink") return agents_.shrink(node, event.gpus);
  v1::Record body;
  v1::NodeSet& set = *body.mutable_node_set();
  set.set_node(node);
  set.set_action(event.what == "drain"     ? v1::NodeSet::DRAIN
                 : event.what == "undrain" ? v1::NodeSet::UNDRAIN
                                           : v1::NodeSet::QUARANTINE);
  ask(std::move(body), "");
}

void World::happen_to_job(const ScenarioEvent& event) {
  const auto known = by_name_.find(event.subject);
  if (known == by_name_.end()) return wrong(event, absl::StrCat("there is no job '", event.subject, "'"));
  const auto found = id_of_.find(event.subject);
  if (found == id_of_.end())
    return wrong(event, absl::StrCat("job '", event.subject, "' has not been submitted then"));
  const uint64_t id = found->second;
  v1::Record body;
  if (event.what == "cancel") body.mutable_cancel_requested()->set_job(id);
  if (event.what == "hold") body.mutable_hold_requested()->set_job(id);
  if (event.what == "release") body.mutable_release_requested()->set_job(id);
  if (event.what == "requeue") body.mutable_requeue_requested()->set_job(id);
  if (event.what == "retry") return submit(*known->second, absl::StrCat(event.subject, "/retry/", id), id);
  if (event.what == "update") {
    v1::UpdateRequest request;
    for (const auto& [key, value] : event.set) (*request.mutable_set())[key] = value;
    if (absl::Status bad = queue::parse_update(request, body.mutable_updated()); !bad.ok())
      return wrong(event, std::string(bad.message()));
    body.mutable_updated()->set_job(id);
  }
  ask(std::move(body), "");
}

}  // namespace muster::sim
