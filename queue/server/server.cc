#include "queue/server/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <mutex>
#include <random>

#include "absl/strings/str_cat.h"
#include "queue/server/muster_service.h"
#include "queue/server/nodes_service.h"

namespace muster::server {
namespace {

constexpr int kMessageBytesMax = 16 << 20;
constexpr size_t kGrpcBytesMax = size_t{1} << 30;

uint64_t random_number() {
  std::random_device device;
  uint64_t out = 0;
  while (out == 0) out = uint64_t{device()} << 32 | device();
  return out;
}

void set_keepalive(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second server on a port must fail
}

}  // namespace

struct Server::Parts {
  std::unique_ptr<Driver> driver;
  OutputRouter router;
  std::unique_ptr<NodesService> nodes;
  std::unique_ptr<MusterService> service;
  std::unique_ptr<grpc::Server> grpc;
  std::mutex mutex;  // guards health
  grpc::HealthCheckServiceInterface* health = nullptr;
  std::string address;
  bool stopped = false;
};

queue::EngineOptions engine_options(const std::string& cell, const std::string& server, bool exclusive_log,
                                    int64_t lease_ms) {
  queue::EngineOptions out;
  out.cell = cell;
  out.server = server;
  out.version = MUSTER_VERSION;
  out.session = random_number();
  out.nonce_seed = random_number();
  out.lease_ms = lease_ms;
  out.exclusive_log = exclusive_log;
  return out;
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Server::~Server() {
  stop();
}
const std::string& Server::address() const {
  return parts_->address;
}
Driver& Server::driver() {
  return *parts_->driver;
}

absl::StatusOr<std::unique_ptr<Server>> Server::start(DriverOptions options, const std::string& listen) {
  const size_t colon = listen.rfind(':');
  if (colon == std::string::npos)
    return absl::InvalidArgumentError(
        absl::StrCat("--listen ", listen, ": must be HOST:PORT, as in 127.0.0.1:7070"));
  auto parts = std::make_unique<Parts>();
  options.on_serving = [parts = parts.get()](bool serving) {
    std::lock_guard lock(parts->mutex);
    if (parts->health != nullptr) parts->health->SetServingStatus(serving);
  };
  parts->driver = std::make_unique<Driver>(std::move(options));
  parts->nodes = std::make_unique<NodesService>(*parts->driver, parts->router);
  parts->service = std::make_unique<MusterService>(*parts->driver, parts->router);

  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(parts->service.get());
  builder.RegisterService(parts->nodes.get());
  builder.SetMaxReceiveMessageSize(kMessageBytesMax);
  builder.SetMaxSendMessageSize(kMessageBytesMax);
  builder.SetResourceQuota(grpc::ResourceQuota("muster").Resize(kGrpcBytesMax));
  set_keepalive(&builder);
  parts->grpc = builder.BuildAndStart();
  if (parts->grpc == nullptr || port == 0)
    return absl::UnavailableError(absl::StrCat("--listen ", listen,
                                               ": the address can't be bound; is another server "
                                               "running there?"));
  {
    std::lock_guard lock(parts->mutex);
    parts->health = parts->grpc->GetHealthCheckService();
    parts->health->SetServingStatus(false);
  }
  parts->address = absl::StrCat(listen.substr(0, colon), ":", port);
  Driver& driver = *parts->driver;
  std::unique_ptr<Server> server(new Server(std::move(parts)));
  if (absl::Status begun = driver.begin(server->address()); !begun.ok()) return begun;
  return server;
}

void Server::stop() {
  Parts& parts = *parts_;
  if (std::exchange(parts.stopped, true)) return;
  // What lasts is told to end, what waits for an answer gets one; then no call is left that gRPC would wait
  // for.
  parts.service->stop();
  parts.nodes->stop();
  parts.driver->stop();
  {
    std::lock_guard lock(parts.mutex);
    parts.health = nullptr;
  }
  if (parts.grpc) {
    parts.grpc->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
    parts.grpc->Wait();
  }
  parts.service.reset();
  parts.nodes.reset();
  parts.grpc.reset();
  parts.driver.reset();
}

}  // namespace muster::server
