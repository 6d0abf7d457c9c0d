// A server: the driver, the services and their gRPC listener. `muster server` runs one; tests and benchmarks
// make their own from parts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "queue/server/driver.h"

namespace muster::server {

// What `muster server` is told.
struct ServerOptions {
  std::string log;        // embedded:DIR | kafka:BROKERS/CELL | memory:
  std::string directory;  // state, identity and locks
  std::string listen = "127.0.0.1:7070";
  std::string shared;  // blobs and snapshots
  int64_t lease_ms = 2000;
};

// Serves until SIGTERM or SIGINT (0) or until it can't (1, said on stderr). Prints "listening HOST:PORT" on
// stdout once it has caught up with the log. Only once in a process; no other thread may run yet.
int run_server(const ServerOptions& options);

class Server {
 public:
  // The driver's on_serving is the server's own.
  static absl::StatusOr<std::unique_ptr<Server>> start(DriverOptions options, const std::string& listen);
  ~Server();
  void stop();

  const std::string& address() const;  // HOST:PORT
  Driver& driver();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// An engine's options with a fresh session.
queue::EngineOptions engine_options(const std::string& cell, const std::string& server, bool exclusive_log,
                                    int64_t lease_ms);

// Opens DIR as a state store; anew: renames what is there first. For DriverOptions::open_store.
absl::StatusOr<std::shared_ptr<storage::StateStore>> open_state_directory(const std::string& directory,
                                                                          bool anew, std::string* said);

}  // namespace muster::server
