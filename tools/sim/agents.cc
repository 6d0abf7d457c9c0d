#include "tools/sim/agents.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/records.h"

namespace muster::sim {
namespace {

std::string name_of(const v1::MemberRef& ref) {
  return absl::StrCat(job_name(ref.job(), ref.element()), ".", ref.rank(), "@", ref.attempt(), ".",
                      ref.fence().position());
}

std::pair<uint64_t, uint32_t> gang_of(const v1::MemberRef& ref) {
  return {ref.job(), ref.element()};
}

const Failure* failure_of(const ScenarioJob& job, const v1::MemberRef& ref, const std::string& task) {
  if (ref.attempt() != 1) return nullptr;
  for (const Failure& failure : job.failures) {
    if (failure.rank == ref.rank() && (failure.task.empty() || failure.task == task)) return &failure;
  }
  return nullptr;
}

// The task that a rank of the gang belongs to.
std::string task_of(const ScenarioJob& job, uint32_t rank) {
  for (const v1::Task& task : job.spec.tasks()) {
    if (rank < task.replicas()) return task.name();
    rank -= task.replicas();
  }
  return "";
}

}  // namespace

void Agents::add(const ScenarioNode& from) {
  Node& node = nodes_[from.name];
  node.name = from.name;
  node.description = from.description;
  connect(node);
}

void Agents::connect(Node& node) {
  node.silent = false;
  node.open = false;
  node.stream = host_.open_stream(node.name);
  v1::AgentMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_node(node.name);
  hello.set_incarnation(node.incarnation);
  *hello.mutable_description() = node.description;
  for (const auto& [name, task] : node.tasks) *hello.add_tasks()->mutable_member() = task.ref;
  host_.to_server(node.stream, std::move(message));
}

void Agents::partition(const std::string& name) {
  Node& node = nodes_.at(name);
  if (std::exchange(node.silent, true)) return;
  node.open = false;
  host_.stream_gone(std::exchange(node.stream, 0));
}

void Agents::crash(const std::string& name) {
  partition(name);
  Node& node = nodes_.at(name);
  for (const auto& [member, task] : node.tasks) {
    if (task.running) keep_progress(task.ref);
  }
  node.tasks.clear();
  node.unacknowledged.clear();
  node.sequence = 0;
  ++node.incarnation;
}

void Agents::come_back(const std::string& name) {
  Node& node = nodes_.at(name);
  if (node.silent) connect(node);
}

void Agents::shrink(const std::string& name, int64_t gpus) {
  Node& node = nodes_.at(name);
  auto* devices = node.description.mutable_devices();
  while (devices->size() > gpus) devices->RemoveLast();
  if (node.silent) return;
  host_.stream_gone(node.stream);
  connect(node);
}

void Agents::reconnect_all() {
  for (auto& [name, node] : nodes_) {
    if (!node.silent) connect(node);
  }
}

void Agents::order(const std::string& name, uint64_t stream, const v1::ServerMessage& message) {
  Node& node = nodes_.at(name);
  if (node.stream != stream) return;  // it has hung up
  if (message.has_welcome()) {
    node.open = true;
    for (const auto& [sequence, report] : node.unacknowledged) host_.to_server(stream, report);
  } else if (message.has_acknowledged()) {
    auto& kept = node.unacknowledged;
    kept.erase(kept.begin(), kept.upper_bound(message.acknowledged()));
  } else if (message.has_refused()) {
    connect(node);
  } else if (message.has_prepare()) {
    prepare(node, message.prepare());
  } else if (message.has_start()) {
    start(node, message.start());
  } else if (message.has_stop()) {
    stop(node, message.stop());
  } else if (message.has_forget()) {
    const auto it = node.tasks.find(name_of(message.forget().member()));
    if (it != node.tasks.end() && !it->second.running) node.tasks.erase(it);
  }
}

Agents::Attempt& Agents::attempt_of(const v1::MemberRef& ref) {
  auto& attempts = attempts_[gang_of(ref)];
  while (!attempts.empty() && attempts.begin()->first + 1 < ref.attempt()) attempts.erase(attempts.begin());
  return attempts[ref.attempt()];
}

void Agents::prepare(Node& node, const v1::PrepareOrder& order) {
  const auto [it, fresh] = node.tasks.try_emplace(name_of(order.member()));
  if (!fresh) return;  // reported already, or on its way
  Task& task = it->second;
  task.ref = order.member();
  task.devices.assign(order.devices().begin(), order.devices().end());
  task.ticket = next_ticket_++;
  const ScenarioJob* job = host_.job_of(task.ref.job());
  const Failure* failure = failure_of(*job, task.ref, order.task().name());
  if (job->prepare_ms == 0) return prepared(node, task, failure);
  host_.at(host_.now_ms() + job->prepare_ms, [this, &node, key = it->first, ticket = task.ticket, failure] {
    const auto found = node.tasks.find(key);
    if (found != node.tasks.end() && found->second.ticket == ticket) prepared(node, found->second, failure);
  });
}

void Agents::prepared(Node& node, Task& task, const Failure* failure) {
  v1::AgentMessage message;
  if (failure != nullptr && failure->image) {
    v1::PrepareFailed& body = *message.mutable_prepare_failed();
    *body.mutable_member() = task.ref;
    body.set_message("the image does not exist");
    body.set_own(true);
    v1::ReportHeader* header = body.mutable_report();
    node.tasks.erase(name_of(body.member()));
    return report(node, std::move(message), header);
  }
  ++attempt_of(task.ref).prepared;
  v1::Prepared& body = *message.mutable_prepared();
  *body.mutable_member() = task.ref;
  body.set_address(node.description.address());
  body.set_port(20'000 + task.ref.rank());
  report(node, std::move(message), body.mutable_report());
}

void Agents::check_start(const Node& node, const Task& task, const v1::StartOrder& order) {
  Attempt& attempt = attempt_of(task.ref);
  if (!attempt.starts.insert({task.ref.rank(), order.run()}).second)
    host_.violation(absl::StrCat("member ", name_of(task.ref), " was started twice as run ", order.run()));
  if (attempt.prepared < static_cast<uint32_t>(order.hosts_size()))
    host_.violation(absl::StrCat("member ", name_of(task.ref), " was started with ", attempt.prepared, " of ",
                                 order.hosts_size(), " members prepared"));
  for (const auto& [member, other] : node.tasks) {
    if (!other.running || &other == &task) continue;
    for (uint32_t device : task.devices) {
      if (std::find(other.devices.begin(), other.devices.end(), device) != other.devices.end())
        host_.violation(absl::StrCat("device ", device, " of node ", node.name, " is used by ", member,
                                     " and by ", name_of(task.ref)));
    }
  }
}

// When the gang's work is done, counted from its attempt's first start.
int64_t Agents::end_of(const v1::MemberRef& ref) {
  const ScenarioJob& job = *host_.job_of(ref.job());
  const auto done = progress_ms_.find(gang_of(ref));
  const int64_t left = job.run_ms - (done == progress_ms_.end() ? 0 : done->second);
  return attempt_of(ref).started_ms + std::max<int64_t>(0, left);
}

void Agents::start(Node& node, const v1::StartOrder& order) {
  const auto it = node.tasks.find(name_of(order.member()));
  if (it == node.tasks.end() || it->second.run >= order.run()) return;
  Task& task = it->second;
  check_start(node, task, order);
  task.run = order.run();
  task.running = true;
  task.ending = false;
  Attempt& attempt = attempt_of(task.ref);
  if (attempt.started_ms < 0) attempt.started_ms = host_.now_ms();
  v1::AgentMessage message;
  v1::Started& body = *message.mutable_started();
  *body.mutable_member() = task.ref;
  body.set_run(task.run);
  report(node, std::move(message), body.mutable_report());
  const ScenarioJob& job = *host_.job_of(task.ref.job());
  const Failure* failure = failure_of(job, task.ref, task_of(job, task.ref.rank()));
  if (failure != nullptr && !failure->image && task.run <= 1)
    return end_later(node, task, host_.now_ms() + failure->after_ms, failure->code, 0);
  end_later(node, task, std::max(host_.now_ms(), end_of(task.ref)), job.exit, 0);
}

void Agents::end_later(Node& node, Task& task, int64_t at_ms, int code, int signal) {
  task.ticket = next_ticket_++;
  host_.at(at_ms, [this, &node, key = name_of(task.ref), ticket = task.ticket, code, signal] {
    const auto it = node.tasks.find(key);
    if (it == node.tasks.end() || it->second.ticket != ticket) return;
    it->second.running = false;
    exit(node, it->second.ref, it->second.run, code, signal, false);
  });
}

void Agents::keep_progress(const v1::MemberRef& ref) {
  Attempt& attempt = attempt_of(ref);
  if (attempt.stopped_ms >= 0 || attempt.started_ms < 0) return;  // counted, or nothing was done
  attempt.stopped_ms = host_.now_ms();
  const ScenarioJob* job = host_.job_of(ref.job());
  if (job->keeps_progress) progress_ms_[gang_of(ref)] += attempt.stopped_ms - attempt.started_ms;
}

void Agents::stop(Node& node, const v1::StopOrder& order) {
  const auto it = node.tasks.find(name_of(order.member()));
  if (it == node.tasks.end() || !it->second.running) {
    const bool ended = it != node.tasks.end() && it->second.run > 0;
    if (!ended) exit(node, order.member(), 0, 0, 0, true);
    if (it != node.tasks.end()) it->second.ticket = 0;
    return;
  }
  Task& task = it->second;
  if (std::exchange(task.ending, true)) return;
  keep_progress(task.ref);
  const ScenarioJob& job = *host_.job_of(task.ref.job());
  const bool killed = job.stop_ms > order.grace_ms();
  end_later(node, task, host_.now_ms() + std::min(job.stop_ms, order.grace_ms()), 0, killed ? 9 : 15);
}

void Agents::exit(Node& node, const v1::MemberRef& ref, uint32_t run, int code, int signal, bool never) {
  v1::AgentMessage message;
  v1::Exited& body = *message.mutable_exited();
  *body.mutable_member() = ref;
  body.set_run(run);
  body.set_never_started(never);
  body.set_code(code);
  body.set_signal(signal);
  report(node, std::move(message), body.mutable_report());
}

void Agents::report(Node& node, v1::AgentMessage message, v1::ReportHeader* header) {
  header->set_incarnation(node.incarnation);
  header->set_sequence(++node.sequence);
  if (node.open) host_.to_server(node.stream, message);
  node.unacknowledged[node.sequence] = std::move(message);
}

}  // namespace muster::sim
