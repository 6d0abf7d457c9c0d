// The stream to one server at a time: dials the servers in turn with back-off, keeps heartbeats, drops a
// stream that has been silent, dials again. It knows nothing of members: it hands over what comes and sends
// what it is given.
//
// Two threads of its own (one reads and dials, one writes); the owner's thread calls everything below and
// takes the events. Every queue is bounded: a full inbox holds the reader back, and so the server. A message
// belongs to the session it was made in (`number`): what is sent into an older one is dropped, so that
// reports stay in order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/v1/service.pb.h"

namespace muster::agent {

class Session {
 public:
  struct Event {
    enum Kind {
      kDialled,  // a server is there: answer with `hello`
      kOpened,   // it has said Welcome (in `message`): the session is open
      kMessage,
      kClosed,  // `text` says why
    };
    Kind kind = kClosed;
    uint64_t number = 0;  // of the session
    v1::ServerMessage message;
    std::string text;
  };

  explicit Session(std::vector<std::string> servers);
  ~Session();

  int fd() const;  // readable: there are events, or room for output
  std::vector<Event> take();

  void hello(uint64_t number, v1::Hello hello);
  void send(uint64_t number, v1::AgentMessage message);
  // How many more chunks of output may be sent now.
  int output_room() const;

  // CLOCK_BOOTTIME at which the open session was last heard; 0: none is open.
  int64_t heard_ms() const;
  // Call about once a second: drops a stream that has been silent for five heartbeats.
  void check_silence();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::agent
