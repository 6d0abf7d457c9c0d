// A server in this process, for tests and benchmarks: the real driver and services on a log and a store of
// one's choice, on a port of its own, with clients connected to it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/v1/service.grpc.pb.h"
#include "queue/server/server.h"

namespace muster::server {

struct FixtureOptions {
  std::unique_ptr<storage::Log> log;  // else embedded in log_directory, else in memory
  std::string log_directory;
  std::string directory;  // state in RocksDB and the fold's mark; empty: in memory
  std::string cell = "local";
  int64_t lease_ms = 2'000;
  std::function<void(DriverOptions&)> adjust;
};

// For Server::start() itself.
DriverOptions server_options(FixtureOptions options);

class ServerFixture {
 public:
  // Returns when the server has caught up. Stops the process if it can't start.
  explicit ServerFixture(FixtureOptions options = {});
  ~ServerFixture();

  v1::Muster::Stub& stub() { return *stub_; }
  v1::Nodes::Stub& nodes() { return *nodes_; }
  Driver& driver() { return server_->driver(); }
  const std::string& address() const { return server_->address(); }
  std::shared_ptr<grpc::Channel> channel() { return channel_; }
  void stop();

  // One job, or what the server said.
  grpc::Status submit(const v1::JobSpec& spec, const std::string& key, v1::SubmitResult* result);
  v1::SubmitResult submit(const v1::JobSpec& spec);  // a key of its own; must be taken
  v1::JobView job(uint64_t id);
  std::string digest();  // of the state now, hex
  // Asks again until the job is in this phase, for at most 20 s. False: it never was.
  bool wait_phase(uint64_t id, v1::Phase phase);

 private:
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Muster::Stub> stub_;
  std::unique_ptr<v1::Nodes::Stub> nodes_;
  int keys_ = 0;
};

// A gang of `members` that run this command.
v1::JobSpec command_spec(std::vector<std::string> command, uint32_t members = 1);

// An agent whose tasks take no time: it prepares, starts and ends what it is told with `exit_code`, and reads
// out `output` when asked.
class FakeAgent {
 public:
  FakeAgent(v1::Nodes::Stub& nodes, const std::string& name, int cpus, int gpus = 0);
  ~FakeAgent();
  bool welcomed();  // waits for it
  // What the server said in its last refusal or as it ended the stream.
  std::string refused();
  void disconnect();

  int exit_code = 0;
  std::string output = "hello\n";

 private:
  struct Stream;
  void run();
  void answer(const v1::ServerMessage& message);
  v1::ReportHeader* header(v1::ReportHeader* header);
  std::unique_ptr<Stream> stream_;
};

}  // namespace muster::server
