#include "queue/state.h"

#include <algorithm>

namespace muster::queue {
namespace {

QueueCounts counts_of(const Job& job) {
  if (job.is_array()) return {waiting_elements(job.state.array()), 0};
  return {job.state.phase() == v1::PENDING, holds_places(job.state.phase())};
}

// By GPU model, what the places of a gang hold, in thousandths: what limits on gpu.MODEL count.
scheduler::Amounts models_of(const scheduler::Cluster& cluster, const Job& job) {
  scheduler::Amounts out;
  for (const v1::MemberState& member : job.state.attempt().members()) {
    const scheduler::Node* node = member.devices().empty() ? nullptr : cluster.find(member.node());
    if (node == nullptr) continue;
    for (uint32_t device : member.devices()) {
      for (const scheduler::DeviceSlot& slot : node->devices) {
        if (slot.index == device) out[slot.model] += 1000;
      }
    }
  }
  return out;
}

}  // namespace

bool terminal(v1::Phase phase) {
  return phase >= v1::SUCCEEDED;
}
bool holds_places(v1::Phase phase) {
  return phase >= v1::PLACED && phase <= v1::STOPPING;
}

int64_t waiting_elements(const v1::ArrayState& array) {
  int64_t out = 0;
  for (const v1::IndexRange& range : array.pending()) out += int64_t{range.last()} - range.first() + 1;
  return out;
}

int64_t deadline_of(const Job& job) {
  const v1::JobState& state = job.state;
  const v1::AttemptState& attempt = state.attempt();
  if (job.is_array()) return 0;  // its elements have their own
  if (state.phase() == v1::PLACED || state.phase() == v1::STARTING)
    return attempt.placed_ms() + job.info->start_limit_ms;
  if (state.phase() != v1::RUNNING) return 0;
  int64_t next = state.time_limit_ms() > 0 ? attempt.running_ms() + state.time_limit_ms() : 0;
  for (const v1::MemberState& member : attempt.members()) {
    if (member.phase() != v1::MEMBER_RESTARTING) continue;
    if (next == 0 || member.restart_at_ms() < next) next = member.restart_at_ms();
  }
  return next;
}

scheduler::Holding holding_of(const Job& job, uint32_t rank) {
  const v1::MemberState& member = job.state.attempt().members(static_cast<int>(rank));
  return {job.info->shape->tasks[job.info->task_of(rank)].each,
          {member.devices().begin(), member.devices().end()},
          job.key()};
}

State::State() {
  meta.set_position(-1);
  meta.set_tick_position(-1);
  meta.set_node_lost_ms(300'000);
}

Job* State::find(const GangKey& key) {
  const auto it = jobs.find(key);
  return it == jobs.end() ? nullptr : it->second.get();
}

const Job* State::find(const GangKey& key) const {
  const auto it = jobs.find(key);
  return it == jobs.end() ? nullptr : it->second.get();
}

const Job* State::recently_ended(const GangKey& key) const {
  const auto it = ended_.find(key);
  return it == ended_.end() ? nullptr : it->second.get();
}

std::shared_ptr<const SpecInfo> State::intern_spec(const v1::JobSpec& spec) {
  std::string bytes = spec_bytes(spec);
  const StateDigest digest = StateDigest::of_text(bytes);
  std::weak_ptr<const SpecInfo>& known = specs_[{digest.low, digest.high}];
  if (auto info = known.lock()) return info;
  auto info = make_spec_info(spec, std::move(bytes));
  known = info;
  if (specs_.size() > specs_swept_ * 2 + 1024) {
    absl::erase_if(specs_, [](const auto& entry) { return entry.second.expired(); });
    specs_swept_ = specs_.size();
  }
  return info;
}

Job& State::add(v1::JobState state, std::shared_ptr<const SpecInfo> info) {
  auto job = std::make_unique<Job>();
  job->state = std::move(state);
  job->info = std::move(info);
  job->shape = job->info->shape;
  if (job->shape->queue != job->state.queue() || job->shape->priority != job->state.priority())
    job->shape = shape_with(*job->shape, job->state.queue(), job->state.priority());
  Job& out = *job;
  jobs[out.key()] = std::move(job);
  if (out.state.element() != 0) live_elements[out.state.id()].insert(out.state.element());
  count(out);
  return out;
}

void State::count(const Job& job) {
  add_counts(job, 1);
}
void State::uncount(const Job& job) {
  add_counts(job, -1);
}

void State::add_counts(const Job& job, int sign) {
  const QueueCounts change = counts_of(job);
  if (change == QueueCounts{}) return;
  const auto total = counts.try_emplace(job.state.queue()).first;
  total->second.pending += sign * change.pending;
  total->second.running += sign * change.running;
  if (total->second == QueueCounts{}) counts.erase(total);
}

void State::set_phase(Job& job, v1::Phase phase) {
  uncount(job);
  job.state.set_phase(phase);
  count(job);
}

void State::refresh_waiting(Job& job) {
  const v1::JobState& state = job.state;
  int64_t copies = 1;
  if (job.is_array()) {
    copies = waiting_elements(state.array());
    if (state.array_running() > 0)
      copies = std::min<int64_t>(copies, int64_t{state.array_running()} - state.array().live());
  }
  const bool waits = !terminal(state.phase()) && (job.is_array() || state.phase() == v1::PENDING) &&
                     !state.held() && state.waits().empty() && copies > 0;
  if (waits) {
    planner.add(
        {job.key(), job.shape, state.place_in_line(), state.not_before_ms(), static_cast<uint32_t>(copies)});
  } else if (job.in_planner) {
    planner.remove(job.key());
  }
  job.in_planner = waits;
}

void State::refresh_deadline(Job& job) {
  const int64_t next = deadline_of(job);
  if (next == job.deadline_ms) return;
  if (job.deadline_ms != 0) deadlines.erase({job.deadline_ms, job.key()});
  if (next != 0) deadlines.insert({next, job.key()});
  job.deadline_ms = next;
}

void State::hold_places(Job& job) {
  const int members = job.state.attempt().members_size();
  for (int rank = 0; rank < members; ++rank) {
    const std::string& node = job.state.attempt().members(rank).node();
    cluster.hold(node, holding_of(job, rank));
    nodes.at(node).members.insert({job.key(), rank});
  }
  usage.use(job.state.queue(), job.shape->total(), models_of(cluster, job), job.shape->preemptible);
}

void State::release_places(Job& job) {
  usage.give_back(job.state.queue(), job.shape->total(), models_of(cluster, job), job.shape->preemptible);
  const int members = job.state.attempt().members_size();
  for (int rank = 0; rank < members; ++rank) {
    const std::string& node = job.state.attempt().members(rank).node();
    cluster.release(node, holding_of(job, rank));
    nodes.at(node).members.erase({job.key(), rank});
  }
}

// What queues use by GPU model depends on how nodes are described: given back as before, used as after.
void State::describe_node(const NodeEntry& node) {
  const v1::NodeDescription& description = node.state.description();
  std::set<GangKey> gangs;
  for (const auto& [key, rank] : node.members) gangs.insert(key);
  for (const GangKey& key : gangs) {
    const Job& job = *jobs.at(key);
    usage.give_back(job.state.queue(), job.shape->total(), models_of(cluster, job), job.shape->preemptible);
  }
  std::vector<scheduler::DeviceSlot> devices;
  for (const v1::Device& device : description.devices()) devices.push_back({device.index(), device.model()});
  cluster.describe(node.state.name(), node.state.revision(),
                   {description.cpu_milli(), description.memory_bytes(), description.devices_size()}, devices,
                   {description.labels().begin(), description.labels().end()});
  for (const GangKey& key : gangs) {
    const Job& job = *jobs.at(key);
    usage.use(job.state.queue(), job.shape->total(), models_of(cluster, job), job.shape->preemptible);
  }
}

void State::refresh_node(NodeEntry& node) {
  const scheduler::Node* known = cluster.find(node.state.name());
  if (known == nullptr || known->revision != node.state.revision()) describe_node(node);
  cluster.set_session(node.state.name(), node.state.session());
  const bool usable =
      !node.state.unreachable() && !node.state.lost() && !node.state.draining() && !node.state.quarantined();
  cluster.set_schedulable(node.state.name(), usable, node.state.draining());
}

void State::load_meta(v1::MetaState loaded) {
  digest_ = StateDigest::from_bytes(loaded.digest());
  chain = Chain::from_bytes(loaded.chain());
  loaded.clear_digest();
  meta = std::move(loaded);
  flushed_position_ = meta.position();
  meta_digest_ = StateDigest::of(Entity::kMeta, "meta", entity_bytes(meta));
}

void State::load_node(v1::NodeState node) {
  NodeEntry& entry = nodes[node.name()];
  entry.state = std::move(node);
  entry.digest = StateDigest::of(Entity::kNodes, entry.state.name(), entity_bytes(entry.state));
  refresh_node(entry);
}

void State::load_queue(v1::QueueState queue) {
  const std::string name = queue.spec().name();
  queue_digests_[name] = StateDigest::of(Entity::kQueues, name, entity_bytes(queue));
  const v1::QueueSpec& spec = queue.spec();
  usage.set(name, spec.weight(), amounts_of(spec.quota()), amounts_of(spec.limit()));
  queues[name] = std::move(queue);
}

void State::load_job(v1::JobState job, const std::string& spec) {
  v1::JobSpec parsed;
  parsed.ParseFromString(spec);
  const std::string key = store_key({job.id(), job.element()});
  const StateDigest digest = StateDigest::of(Entity::kLive, key, entity_bytes(job));
  Job& added = add(std::move(job), intern_spec(parsed));
  added.digest = digest;
  added.stored = true;
}

void State::finish_load() {
  std::vector<GangKey> keys;
  for (const auto& entry : jobs) keys.push_back(entry.first);
  std::sort(keys.begin(), keys.end());
  for (const GangKey& key : keys) {
    Job& job = *jobs[key];
    if (holds_places(job.state.phase()) && !job.is_array()) hold_places(job);
    refresh_waiting(job);
    refresh_deadline(job);
  }
}

scheduler::Amounts amounts_of(const google::protobuf::RepeatedPtrField<v1::Amount>& from) {
  scheduler::Amounts out;
  for (const v1::Amount& amount : from) out[amount.resource()] = amount.value();
  return out;
}

}  // namespace muster::queue
