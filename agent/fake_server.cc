#include "agent/fake_server.h"

#include <grpcpp/grpcpp.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "muster/v1/service.grpc.pb.h"

namespace muster::agent {
namespace {

using Stream = grpc::ServerReaderWriter<v1::ServerMessage, v1::AgentMessage>;
constexpr auto kPatience = std::chrono::seconds(60);
constexpr int64_t kHeartbeatMs = 200;

const v1::ReportHeader* header_of(const v1::AgentMessage& message) {
  switch (message.what_case()) {
    case v1::AgentMessage::kPrepared:
      return &message.prepared().report();
    case v1::AgentMessage::kPrepareFailed:
      return &message.prepare_failed().report();
    case v1::AgentMessage::kStarted:
      return &message.started().report();
    case v1::AgentMessage::kExited:
      return &message.exited().report();
    default:
      return nullptr;
  }
}

}  // namespace

class FakeServer::Service final : public v1::Nodes::Service {
 public:
  grpc::Status Session(grpc::ServerContext* context, Stream* stream) override {
    v1::AgentMessage message;
    if (!stream->Read(&message) || !message.has_hello()) return grpc::Status::OK;
    {
      const std::lock_guard lock(mutex_);
      hellos_.push_back(message.hello());
      v1::ServerMessage first;
      if (!refusal_.empty()) {
        first.set_refused(refusal_);
        stream->Write(first);
        changed_.notify_all();
        return grpc::Status::OK;
      }
      first.mutable_welcome()->set_cell(cell_);
      first.mutable_welcome()->set_session(hellos_.size());
      first.mutable_welcome()->set_heartbeat_ms(kHeartbeatMs);
      stream->Write(first);
      stream_ = stream;
      context_ = context;
    }
    changed_.notify_all();
    while (stream->Read(&message)) take(stream, message);
    const std::lock_guard lock(mutex_);
    if (stream_ == stream) {
      stream_ = nullptr;
      context_ = nullptr;
    }
    changed_.notify_all();
    return grpc::Status::OK;
  }

  void take(Stream* stream, const v1::AgentMessage& message) {
    const std::lock_guard lock(mutex_);
    v1::ServerMessage answer;
    if (message.heartbeat()) {
      answer.set_heartbeat(true);
      if (heartbeats_) stream->Write(answer);
    } else if (message.has_output()) {
      outputs_[message.output().request()].append(message.output().data());
      if (message.output().end()) ended_.insert(message.output().request());
    } else if (const v1::ReportHeader* header = header_of(message)) {
      ++received_;
      // As the fold counts: one number per incarnation.
      if (header->sequence() > last_[header->incarnation()]) {
        last_[header->incarnation()] = header->sequence();
        reports_.push_back(message);
      }
      answer.set_acknowledged(header->sequence());
      if (acknowledges_) stream->Write(answer);
    }
    changed_.notify_all();
  }

  template <typename Condition>
  bool wait(const Condition& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::string cell_ = "test";
  std::string refusal_;
  bool acknowledges_ = true;
  bool heartbeats_ = true;
  Stream* stream_ = nullptr;
  grpc::ServerContext* context_ = nullptr;
  std::vector<v1::Hello> hellos_;
  std::vector<v1::AgentMessage> reports_;
  std::map<uint64_t, uint64_t> last_;
  std::map<uint64_t, std::string> outputs_;
  std::set<uint64_t> ended_;
  size_t received_ = 0;
};

FakeServer::FakeServer() : service_(std::make_unique<Service>()) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &service_->port_);
  builder.RegisterService(service_.get());
  service_->server_ = builder.BuildAndStart();
}

FakeServer::~FakeServer() {
  service_->server_->Shutdown(std::chrono::system_clock::now());
  service_->server_->Wait();
}

std::string FakeServer::address() const {
  return absl::StrCat("127.0.0.1:", service_->port_);
}

void FakeServer::set_cell(const std::string& cell) {
  const std::lock_guard lock(service_->mutex_);
  service_->cell_ = cell;
}
void FakeServer::set_acknowledges(bool yes) {
  const std::lock_guard lock(service_->mutex_);
  service_->acknowledges_ = yes;
}
void FakeServer::set_heartbeats(bool yes) {
  const std::lock_guard lock(service_->mutex_);
  service_->heartbeats_ = yes;
}
void FakeServer::set_refusal(const std::string& text) {
  const std::lock_guard lock(service_->mutex_);
  service_->refusal_ = text;
}

bool FakeServer::send(const v1::ServerMessage& message) {
  const std::lock_guard lock(service_->mutex_);
  return service_->stream_ != nullptr && service_->stream_->Write(message);
}

void FakeServer::drop() {
  const std::lock_guard lock(service_->mutex_);
  if (service_->context_ != nullptr) service_->context_->TryCancel();
}

bool FakeServer::wait_reports(const Wanted& wanted) {
  return service_->wait([&] { return wanted(service_->reports_); });
}
std::vector<v1::AgentMessage> FakeServer::reports() const {
  const std::lock_guard lock(service_->mutex_);
  return service_->reports_;
}
size_t FakeServer::received() const {
  const std::lock_guard lock(service_->mutex_);
  return service_->received_;
}
std::string FakeServer::output(uint64_t request, bool* ended) const {
  const std::lock_guard lock(service_->mutex_);
  *ended = service_->ended_.count(request) != 0;
  const auto it = service_->outputs_.find(request);
  return it == service_->outputs_.end() ? "" : it->second;
}
bool FakeServer::wait_output_end(uint64_t request) {
  return service_->wait([&] { return service_->ended_.count(request) != 0; });
}
bool FakeServer::wait_sessions(size_t count) {
  return service_->wait([&] { return service_->hellos_.size() >= count && service_->stream_ != nullptr; });
}
std::vector<v1::Hello> FakeServer::hellos() const {
  const std::lock_guard lock(service_->mutex_);
  return service_->hellos_;
}

}  // namespace muster::agent
