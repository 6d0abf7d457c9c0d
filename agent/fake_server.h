// A server of the service Nodes for tests of real agents: a script of the test's own instead of a fold. It
// keeps every report that came, acknowledges them unless told not to, and can drop the stream at any moment.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "muster/v1/service.pb.h"

namespace muster::agent {

class FakeServer {
 public:
  FakeServer();
  ~FakeServer();

  std::string address() const;  // 127.0.0.1:PORT

  // What the next sessions are like.
  void set_cell(const std::string& cell);
  void set_acknowledges(bool yes);
  void set_heartbeats(bool yes);
  void set_refusal(const std::string& text);  // sent instead of Welcome

  // Sends into the open session; false: none is open.
  bool send(const v1::ServerMessage& message);
  void drop();  // ends the present stream

  // Waits until `wanted` holds of all reports so far, in the order they came, duplicates (by sequence) left
  // out. False: it did not within a generous time.
  using Wanted = std::function<bool(const std::vector<v1::AgentMessage>&)>;
  bool wait_reports(const Wanted& wanted);
  std::vector<v1::AgentMessage> reports() const;
  size_t received() const;  // duplicates counted
  std::string output(uint64_t request, bool* ended) const;
  bool wait_output_end(uint64_t request);
  bool wait_sessions(size_t count);
  std::vector<v1::Hello> hellos() const;

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace muster::agent
