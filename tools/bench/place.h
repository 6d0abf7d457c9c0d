// Where a bench runs: a directory of its own, and a fresh log in the place that --log names. Both are removed
// at the end, a Kafka topic included.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/open_log.h"
#include "tools/bench/child.h"
#include "tools/cli/client.h"

namespace muster::bench {

class Place {
 public:
  // `log`: embedded: (in the temporary directory), embedded:DIR (in a new directory within DIR),
  // kafka:BROKERS/PREFIX (topics PREFIX-<random>…) or memory:.
  static absl::StatusOr<std::unique_ptr<Place>> make(const std::string& log);
  ~Place();

  const std::string& directory() const { return directory_; }
  const storage::LogAddress& log() const { return log_; }  // a fresh one
  std::string log_text() const;                            // as --log takes it
  std::string raw_topic() const { return log_.cell + "-raw"; }
  std::string raw_file() const { return log_.directory + "-raw"; }  // on the embedded log's disk

 private:
  Place() = default;
  std::string directory_;
  std::string log_parent_;  // made within the DIR that the user named
  storage::LogAddress log_;
};

// A real server on the place's log, ready to be used, and a client of it. Ends with the object.
class BenchServer {
 public:
  static absl::StatusOr<std::unique_ptr<BenchServer>> start(const Place& place);
  // Waits until it leads its cell.
  absl::Status lead();
  absl::StatusOr<v1::ServerStatus> status();
  // Waits until so many jobs have ended.
  absl::Status until_ended(uint64_t jobs);

  Child& process() { return *process_; }
  tools::Client& client() { return *client_; }
  const std::string& address() const { return client_->address(); }

 private:
  BenchServer() = default;
  std::unique_ptr<Child> process_;
  std::unique_ptr<tools::Client> client_;
};

}  // namespace muster::bench
