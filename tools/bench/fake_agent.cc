#include "tools/bench/fake_agent.h"

#include "absl/strings/str_cat.h"

namespace muster::bench {
namespace {

using std::chrono::steady_clock;

constexpr uint64_t kIncarnation = 1;
constexpr std::chrono::seconds kPatience{30};

v1::AgentMessage hello() {
  v1::AgentMessage message;
  v1::Hello& body = *message.mutable_hello();
  body.set_node("bench");
  body.set_incarnation(kIncarnation);
  body.mutable_description()->set_address("127.0.0.1");
  body.mutable_description()->set_cpu_milli(int64_t{1} << 40);
  body.mutable_description()->set_memory_bytes(int64_t{1} << 60);
  return message;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FakeAgent>> FakeAgent::connect(const std::string& server) {
  std::unique_ptr<FakeAgent> out(new FakeAgent);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  out->stub_ =
      v1::Nodes::NewStub(grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments));
  out->stream_ = out->stub_->Session(&out->context_);
  out->stream_->Write(hello());
  out->reader_ = std::thread([agent = out.get()] { agent->read(); });
  out->beater_ = std::thread([agent = out.get()] { agent->beat(); });
  std::unique_lock lock(out->mutex_);
  out->changed_.wait_for(lock, kPatience, [&] { return out->heartbeat_ms_ > 0 || out->ended_; });
  if (out->heartbeat_ms_ > 0) return out;
  const std::string why = out->refused_;
  lock.unlock();
  return absl::UnavailableError(absl::StrCat("the server did not welcome the bench's agent: ", why));
}

FakeAgent::~FakeAgent() {
  context_.TryCancel();
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  reader_.join();
  beater_.join();
  stream_->Finish();
}

void FakeAgent::read() {
  v1::ServerMessage message;
  while (stream_->Read(&message)) {
    std::unique_lock lock(mutex_);
    if (message.has_welcome()) heartbeat_ms_ = message.welcome().heartbeat_ms();
    if (!message.refused().empty()) refused_ = message.refused();
    if (message.has_prepare()) {
      last_job_ = message.prepare().member().job();
      last_at_ = steady_clock::now();
    }
    changed_.notify_all();
    if (!message.has_prepare() && !message.has_start()) continue;
    if (answering_) {
      answer_locked(message);
    } else {
      unanswered_.push_back(message);
    }
  }
  std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void FakeAgent::beat() {
  v1::AgentMessage heartbeat;
  heartbeat.set_heartbeat(true);
  std::unique_lock lock(mutex_);
  while (!ended_) {
    changed_.wait_for(lock, std::chrono::milliseconds(heartbeat_ms_ > 0 ? heartbeat_ms_ / 2 : 100),
                      [&] { return ended_; });
    if (ended_ || heartbeat_ms_ == 0) continue;
    lock.unlock();
    {
      std::lock_guard writing(write_mutex_);
      stream_->Write(heartbeat);
    }
    lock.lock();
  }
}

v1::ReportHeader FakeAgent::header_locked() {
  v1::ReportHeader header;
  header.set_node("bench");
  header.set_incarnation(kIncarnation);
  header.set_sequence(++sequence_);
  return header;
}

// Reports must leave in the order of their sequences, so that the lock is kept while they are written.
void FakeAgent::answer_locked(const v1::ServerMessage& order) {
  std::lock_guard writing(write_mutex_);
  v1::AgentMessage message;
  if (order.has_prepare()) {
    v1::Prepared& body = *message.mutable_prepared();
    *body.mutable_report() = header_locked();
    *body.mutable_member() = order.prepare().member();
    body.set_address("127.0.0.1");
    body.set_port(20'000);
    stream_->Write(message);
    return;
  }
  v1::Started& started = *message.mutable_started();
  *started.mutable_report() = header_locked();
  *started.mutable_member() = order.start().member();
  started.set_run(order.start().run());
  stream_->Write(message);
  v1::Exited& exited = *message.mutable_exited();
  *exited.mutable_report() = header_locked();
  *exited.mutable_member() = order.start().member();
  exited.set_run(order.start().run());
  stream_->Write(message);
}

void FakeAgent::answer(bool on) {
  std::lock_guard lock(mutex_);
  answering_ = on;
  if (!on) return;
  for (const v1::ServerMessage& order : unanswered_) answer_locked(order);
  unanswered_.clear();
}

absl::StatusOr<steady_clock::time_point> FakeAgent::prepared_at(uint64_t job) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kPatience, [&] { return last_job_ >= job || ended_; });
  if (last_job_ == job) return last_at_;
  return absl::DeadlineExceededError(
      absl::StrCat("job ", job, " was not placed; the last one is ", last_job_));
}

}  // namespace muster::bench
