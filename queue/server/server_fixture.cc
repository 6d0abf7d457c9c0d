#include "queue/server/server_fixture.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/memory_log.h"
#include "storage/open_log.h"

namespace muster::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{20};

template <typename T>
T must(absl::StatusOr<T> value, const char* what) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s: %s\n", what, std::string(value.status().message()).c_str());
  std::abort();
}

std::unique_ptr<storage::Log> open_log(FixtureOptions* options) {
  if (options->log) return std::move(options->log);
  if (options->log_directory.empty()) return storage::make_memory_log();
  auto address = must(storage::parse_log_address("embedded:" + options->log_directory), "the log's address");
  return must(storage::open_log(address, storage::LogMode::kWrite), "the log");
}

}  // namespace

DriverOptions server_options(FixtureOptions options) {
  DriverOptions out;
  out.log = open_log(&options);
  out.engine = engine_options(options.cell, "fixture", out.log->exclusive(), options.lease_ms);
  out.directory = options.directory;
  if (options.directory.empty()) {
    out.open_store = [](bool, std::string*) -> absl::StatusOr<std::shared_ptr<storage::StateStore>> {
      return std::shared_ptr<storage::StateStore>(storage::make_memory_state_store());
    };
  } else {
    std::filesystem::create_directories(options.directory);
    out.open_store = [directory = options.directory + "/state"](bool anew, std::string* said) {
      return open_state_directory(directory, anew, said);
    };
  }
  if (options.adjust) options.adjust(out);
  return out;
}

ServerFixture::ServerFixture(FixtureOptions options)
    : server_(must(Server::start(server_options(std::move(options)), "127.0.0.1:0"), "the server")) {
  const auto deadline = steady_clock::now() + kPatience;
  while (!driver().caught_up() && steady_clock::now() < deadline)
    std::this_thread::sleep_for(milliseconds(2));
  channel_ = grpc::CreateChannel(address(), grpc::InsecureChannelCredentials());
  stub_ = v1::Muster::NewStub(channel_);
  nodes_ = v1::Nodes::NewStub(channel_);
}

ServerFixture::~ServerFixture() {
  stop();
}

void ServerFixture::stop() {
  if (server_) server_->stop();
}

grpc::Status ServerFixture::submit(const v1::JobSpec& spec, const std::string& key,
                                   v1::SubmitResult* result) {
  grpc::ClientContext context;
  v1::SubmitRequest request;
  v1::SubmitReply reply;
  request.add_jobs()->set_key(key);
  *request.mutable_jobs(0)->mutable_spec() = spec;
  grpc::Status status = stub_->Submit(&context, request, &reply);
  if (status.ok()) *result = reply.results(0);
  return status;
}

v1::SubmitResult ServerFixture::submit(const v1::JobSpec& spec) {
  v1::SubmitResult result;
  const grpc::Status status = submit(spec, absl::StrCat("fixture-", ++keys_), &result);
  if (!status.ok()) must<bool>(absl::UnknownError(status.error_message()), "a submission");
  return result;
}

v1::JobView ServerFixture::job(uint64_t id) {
  grpc::ClientContext context;
  v1::GetJobRequest request;
  v1::JobView view;
  request.mutable_job()->set_id(id);
  const grpc::Status status = stub_->GetJob(&context, request, &view);
  if (!status.ok()) must<bool>(absl::UnknownError(status.error_message()), "a job");
  return view;
}

std::string ServerFixture::digest() {
  return driver()
      .call([](Turn& turn) {
        turn.commit();
        return turn.state().digest().hex();
      })
      .value_or("");
}

bool ServerFixture::wait_phase(uint64_t id, v1::Phase phase) {
  const auto deadline = steady_clock::now() + kPatience;
  while (steady_clock::now() < deadline) {
    if (job(id).state().phase() == phase) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

v1::JobSpec command_spec(std::vector<std::string> command, uint32_t members) {
  v1::JobSpec spec;
  v1::Task& task = *spec.add_tasks();
  task.set_replicas(members);
  for (std::string& word : command) task.add_command(std::move(word));
  return spec;
}

struct FakeAgent::Stream {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>> rpc;
  std::mutex mutex;
  std::condition_variable changed;
  std::string name, refused;
  bool welcomed = false, ended = false;
  uint64_t sequence = 0, session = 0;
  std::thread thread;
};

FakeAgent::FakeAgent(v1::Nodes::Stub& nodes, const std::string& name, int cpus, int gpus)
    : stream_(std::make_unique<Stream>()) {
  stream_->name = name;
  stream_->rpc = nodes.Session(&stream_->context);
  v1::AgentMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_node(name);
  hello.set_incarnation(1);
  v1::NodeDescription& node = *hello.mutable_description();
  node.set_address("127.0.0.1");
  node.set_cpu_milli(cpus * 1000);
  node.set_memory_bytes(int64_t{64} << 30);
  for (int i = 0; i < gpus; ++i) {
    node.add_devices()->set_index(static_cast<uint32_t>(i));
    node.mutable_devices(i)->set_model("a100");
  }
  stream_->rpc->Write(message);
  stream_->thread = std::thread([this] { run(); });
}

FakeAgent::~FakeAgent() {
  disconnect();
  stream_->thread.join();
}

void FakeAgent::disconnect() {
  stream_->context.TryCancel();
}

bool FakeAgent::welcomed() {
  std::unique_lock lock(stream_->mutex);
  stream_->changed.wait_for(lock, kPatience, [&] { return stream_->welcomed || stream_->ended; });
  return stream_->welcomed;
}

std::string FakeAgent::refused() {
  std::unique_lock lock(stream_->mutex);
  stream_->changed.wait_for(lock, kPatience, [&] { return stream_->ended; });
  return stream_->refused;
}

void FakeAgent::run() {
  v1::ServerMessage message;
  while (stream_->rpc->Read(&message)) answer(message);
  const grpc::Status status = stream_->rpc->Finish();
  std::lock_guard lock(stream_->mutex);
  if (stream_->refused.empty()) stream_->refused = status.error_message();
  stream_->ended = true;
  stream_->changed.notify_all();
}

v1::ReportHeader* FakeAgent::header(v1::ReportHeader* header) {
  header->set_node(stream_->name);
  header->set_incarnation(1);
  header->set_sequence(++stream_->sequence);
  header->set_session(stream_->session);
  return header;
}

void FakeAgent::answer(const v1::ServerMessage& message) {
  v1::AgentMessage out;
  if (message.has_welcome() || !message.refused().empty()) {
    std::lock_guard lock(stream_->mutex);
    stream_->welcomed |= message.has_welcome();
    stream_->session = message.welcome().session();
    stream_->refused = message.refused();
    stream_->changed.notify_all();
  } else if (message.has_prepare()) {
    header(out.mutable_prepared()->mutable_report());
    *out.mutable_prepared()->mutable_member() = message.prepare().member();
    out.mutable_prepared()->set_address("127.0.0.1");
    out.mutable_prepared()->set_port(29500);
    stream_->rpc->Write(out);
  } else if (message.has_start()) {
    header(out.mutable_started()->mutable_report());
    *out.mutable_started()->mutable_member() = message.start().member();
    out.mutable_started()->set_run(message.start().run());
    stream_->rpc->Write(out);
    header(out.mutable_exited()->mutable_report());
    *out.mutable_exited()->mutable_member() = message.start().member();
    out.mutable_exited()->set_run(message.start().run());
    out.mutable_exited()->set_code(exit_code);
    stream_->rpc->Write(out);
  } else if (message.has_read_output() && !message.read_output().cancel()) {
    v1::OutputChunk& chunk = *out.mutable_output();
    chunk.set_request(message.read_output().request());
    chunk.set_offset(message.read_output().from());
    chunk.set_data(output.substr(std::min<size_t>(output.size(), static_cast<size_t>(chunk.offset()))));
    chunk.set_end(true);
    stream_->rpc->Write(out);
  }
}

}  // namespace muster::server
