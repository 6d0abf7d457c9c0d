#include "queue/test_cell.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/replay.h"

namespace muster::queue {

std::optional<std::string> TestHistory::get(Entity table, const std::string& key) {
  const auto it = entities.find({static_cast<int>(table), key});
  if (it == entities.end()) return std::nullopt;
  return it->second;
}

void TestHistory::scan_expiry(const std::function<bool(const std::string&)>& visit) {
  for (auto it = entities.lower_bound({static_cast<int>(Entity::kKeyExpiry), ""});
       it != entities.end() && it->first.first == static_cast<int>(Entity::kKeyExpiry); ++it) {
    if (!visit(it->first.second)) return;
  }
}

void TestHistory::write(std::vector<Write> writes) {
  for (Write& write : writes) {
    const std::pair<int, std::string> key{static_cast<int>(write.table), write.key};
    if (write.value)
      entities[key] = *write.value;
    else
      entities.erase(key);
  }
}

State TestHistory::load() const {
  State state;
  const auto each = [&](Entity table, const auto& visit) {
    for (auto it = entities.lower_bound({static_cast<int>(table), ""});
         it != entities.end() && it->first.first == static_cast<int>(table); ++it)
      visit(it->second);
  };
  each(Entity::kMeta, [&](const std::string& bytes) {
    v1::MetaState meta;
    meta.ParseFromString(bytes);
    state.load_meta(meta);
  });
  each(Entity::kNodes, [&](const std::string& bytes) {
    v1::NodeState node;
    node.ParseFromString(bytes);
    state.load_node(node);
  });
  each(Entity::kQueues, [&](const std::string& bytes) {
    v1::QueueState queue;
    queue.ParseFromString(bytes);
    state.load_queue(queue);
  });
  each(Entity::kLive, [&](const std::string& bytes) {
    v1::JobState job;
    job.ParseFromString(bytes);
    state.load_job(job, entities.at({static_cast<int>(Entity::kSpecs), store_key({job.id(), 0})}));
  });
  state.finish_load();
  return state;
}

v1::JobSpec test_spec(const std::string& name, uint32_t replicas, int64_t cpu, int64_t gpus) {
  v1::JobSpec spec;
  spec.set_name(name);
  spec.set_queue("default");
  spec.set_user("ana");
  spec.set_grace_ms(30'000);
  spec.set_signal("TERM");
  spec.set_success("all");
  spec.set_start_limit_ms(600'000);
  spec.mutable_retries()->set_own(0);
  spec.mutable_retries()->set_infrastructure(10);
  spec.mutable_retries()->set_start(5);
  v1::Task& task = *spec.add_tasks();
  task.set_name("main");
  task.set_replicas(replicas);
  task.add_command("true");
  task.mutable_resources()->set_cpu_milli(cpu * 1000);
  task.mutable_resources()->set_gpu_milli(gpus * 1000);
  return spec;
}

std::string member_name(const v1::MemberRef& ref) {
  return absl::StrCat(job_name(ref.job(), ref.element()), ".", ref.rank());
}

TestCell::TestCell(int64_t lease_ms) : lease_ms_(lease_ms) {
  start();
  pump();
}

void TestCell::start() {
  EngineOptions options;
  options.server = "s1";
  options.session = next_session_;
  options.nonce_seed = next_session_++;
  options.lease_ms = lease_ms_;
  options.exclusive_log = true;
  State state = history.load();
  folded_ = static_cast<size_t>(state.meta.position() + 1);
  engine = std::make_unique<Engine>(options, std::move(state));
}

void TestCell::crash() {
  script.push_back("crash");
  engine.reset();
  start();
  for (auto& [name, agent] : agents) agent.stream = 0;
  pump();
  for (auto& [name, agent] : agents) {
    if (agent.connected) connect(name);
  }
}

TestCell::Agent& TestCell::node(const std::string& name, int cpu, int gpus, const std::string& model,
                                std::map<std::string, std::string> labels) {
  Agent& agent = agents[name];
  agent.name = name;
  agent.description.set_address("10.0.0.1");
  agent.description.set_cpu_milli(cpu * 1000);
  agent.description.set_memory_bytes(int64_t{64} << 30);
  for (int i = 0; i < gpus; ++i) {
    v1::Device& device = *agent.description.add_devices();
    device.set_index(static_cast<uint32_t>(i));
    device.set_model(model);
  }
  for (const auto& [label, value] : labels) (*agent.description.mutable_labels())[label] = value;
  connect(name);
  return agent;
}

void TestCell::connect(const std::string& name) {
  Agent& agent = agents.at(name);
  agent.connected = true;
  agent.stream = next_stream_++;
  v1::AgentMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_node(name);
  hello.set_incarnation(agent.incarnation);
  *hello.mutable_description() = agent.description;
  for (const auto& [member, ref] : agent.running) *hello.add_tasks()->mutable_member() = ref;
  for (const auto& [member, ref] : agent.prepared) *hello.add_tasks()->mutable_member() = ref;
  Output out;
  engine->agent_message(agent.stream, std::move(message), now_ms_, now_ms_, &out);
  take(std::move(out));
  pump();
}

void TestCell::disconnect(const std::string& name) {
  Agent& agent = agents.at(name);
  agent.connected = false;
  Output out;
  engine->agent_gone(agent.stream, now_ms_, &out);
  agent.stream = 0;
  take(std::move(out));
  pump();
}

Outcome TestCell::ask(v1::Record body) {
  Output out;
  const uint64_t request = next_request_++;
  engine->request(request, std::move(body), now_ms_, &out);
  take(std::move(out));
  pump();
  return replies_.at(request);
}

Outcome TestCell::submit(const v1::JobSpec& spec, const std::string& key) {
  v1::Record body;
  body.mutable_submitted()->set_key(key.empty() ? absl::StrCat("key-", next_request_) : key);
  *body.mutable_submitted()->mutable_spec() = spec;
  return ask(std::move(body));
}

void TestCell::take(Output out) {
  EXPECT_EQ(out.fatal, "");
  if (drop_appends && !out.appends.empty()) {
    Output failed;
    engine->append_failed(out.appends.front().sequence, out.appends.back().sequence, false, "the log is down",
                          &failed);
    for (Reply& reply : failed.replies) out.replies.push_back(std::move(reply));
    out.appends.clear();
  }
  for (Append& append : out.appends) log.push_back({now_ms_, append.key, append.value});
  for (Reply& reply : out.replies) replies_[reply.request] = reply.outcome;
  for (Order& order : out.orders) orders_.push_back(std::move(order));
}

void TestCell::fold_all() {
  while (folded_ < log.size()) {
    const TestRecord& entry = log[folded_];
    v1::Record record;
    LogInput input{static_cast<int64_t>(folded_), entry.timestamp_ms, {}, nullptr};
    input.chain = chain_next(engine->state().chain, input.position, entry.key, entry.value);
    if (decode_record(entry.value, "local", &record) == Decoded::kOk) input.record = &record;
    ++folded_;
    Found found;
    if (input.record != nullptr)
      found = fetch(engine->state(), engine->reads(record, entry.timestamp_ms), history);
    Output out;
    engine->fold(input, found, &out);
    script.push_back(absl::StrCat(input.position, " ", record.type(), " ", entry.key));
    take(std::move(out));
    engine->state().check_invariants();
  }
}

void TestCell::pump() {
  for (int turns = 0; turns < 1000; ++turns) {
    fold_all();
    Output out;
    engine->settle(now_ms_, true, &out);
    take(std::move(out));
    std::vector<Order> orders = std::move(orders_);
    orders_.clear();
    if (orders.empty() && folded_ == log.size()) {
      history.write(engine->flush());
      if (reconnect_.empty() || drop_appends) return;
      const std::string name = *reconnect_.begin();
      reconnect_.erase(reconnect_.begin());
      if (agents.at(name).connected) return connect(name);
    }
    for (const Order& order : orders) {
      Output reports;
      for (auto& [name, agent] : agents) {
        if (agent.stream == order.stream && agent.stream != 0) obey(agent, order.message, &reports);
      }
      take(std::move(reports));
    }
  }
  FAIL() << "the cell does not come to rest";
}

void TestCell::send(Agent& agent, v1::AgentMessage message, Output* out) {
  agent.unacknowledged[agent.sequence] = message;
  engine->agent_message(agent.stream, std::move(message), now_ms_, now_ms_, out);
}

void TestCell::report_exit(Agent& agent, const v1::MemberRef& ref, int code, int signal, bool never,
                           Output* out) {
  v1::AgentMessage message;
  v1::Exited& body = *message.mutable_exited();
  body.mutable_report()->set_incarnation(agent.incarnation);
  body.mutable_report()->set_sequence(++agent.sequence);
  *body.mutable_member() = ref;
  body.set_run(never ? 0 : agent.run[member_name(ref)]);
  body.set_never_started(never);
  body.set_code(code);
  body.set_signal(signal);
  agent.running.erase(member_name(ref));
  agent.prepared.erase(member_name(ref));
  send(agent, std::move(message), out);
}

void TestCell::obey(Agent& agent, const v1::ServerMessage& message, Output* out) {
  v1::AgentMessage answer;
  if (message.has_acknowledged()) {
    auto& kept = agent.unacknowledged;
    kept.erase(kept.begin(), kept.upper_bound(message.acknowledged()));
  } else if (message.has_welcome()) {
    for (const auto& [sequence, report] : agent.unacknowledged)
      engine->agent_message(agent.stream, report, now_ms_, now_ms_, out);
  } else if (message.has_refused()) {
    agent.stream = 0;
    reconnect_.insert(agent.name);
  } else if (message.has_prepare() && agent.prepares) {
    const v1::MemberRef& ref = message.prepare().member();
    v1::Prepared& body = *answer.mutable_prepared();
    body.mutable_report()->set_incarnation(agent.incarnation);
    body.mutable_report()->set_sequence(++agent.sequence);
    *body.mutable_member() = ref;
    body.set_address("10.0.0.1");
    body.set_port(4000 + ref.rank());
    agent.prepared[member_name(ref)] = ref;
    send(agent, std::move(answer), out);
  } else if (message.has_start() && agent.starts) {
    const v1::MemberRef& ref = message.start().member();
    v1::Started& body = *answer.mutable_started();
    body.mutable_report()->set_incarnation(agent.incarnation);
    body.mutable_report()->set_sequence(++agent.sequence);
    *body.mutable_member() = ref;
    body.set_run(message.start().run());
    agent.run[member_name(ref)] = message.start().run();
    agent.prepared.erase(member_name(ref));
    agent.running[member_name(ref)] = ref;
    send(agent, std::move(answer), out);
  } else if (message.has_stop() && agent.stops) {
    const v1::MemberRef ref = message.stop().member();
    const bool never = !agent.running.contains(member_name(ref));
    report_exit(agent, ref, 0, never ? 0 : 15, never, out);
  }
}

void TestCell::exit_member(const std::string& member, int code, int signal) {
  for (auto& [name, agent] : agents) {
    const auto it = agent.running.find(member);
    if (it == agent.running.end()) continue;
    Output out;
    const v1::MemberRef ref = it->second;
    report_exit(agent, ref, code, signal, false, &out);
    take(std::move(out));
    pump();
    return;
  }
  FAIL() << member << " does not run";
}

void TestCell::pass(int64_t ms) {
  for (int64_t step = 0; step < ms; step += lease_ms_ / 3) {
    now_ms_ += lease_ms_ / 3;
    Output out;
    engine->clock(now_ms_, now_ms_, &out);
    take(std::move(out));
    pump();
  }
}

v1::JobState TestCell::job(uint64_t id, uint32_t element) const {
  if (const Job* job = engine->state().find({id, element})) return job->state;
  v1::JobState out;
  const auto it = history.entities.find({static_cast<int>(Entity::kEnded), store_key({id, element})});
  if (it != history.entities.end()) out.ParseFromString(it->second);
  return out;
}

std::string TestCell::status(uint64_t id, uint32_t element) const {
  const v1::JobState state = job(id, element);
  std::string out = v1::Phase_Name(state.phase());
  if (terminal(state.phase()))
    absl::StrAppend(&out, " ", v1::Reason_Name(state.reason()), " ", state.job_exit());
  return out;
}

std::string TestCell::digest() {
  history.write(engine->flush());
  return engine->state().digest().hex();
}

void TestCell::finish() {
  pump();
  Replayer replayer(7);
  for (size_t i = 0; i < log.size(); ++i)
    ASSERT_TRUE(replayer.add(static_cast<int64_t>(i), log[i].timestamp_ms, log[i].key, log[i].value).ok());
  EXPECT_EQ(replayer.digest_hex(), digest());
  State loaded = history.load();
  loaded.check_invariants();
  EXPECT_EQ(loaded.digest().hex(), digest());
}

}  // namespace muster::queue
