// Serves ReadOutput: sends parts of members' output.log as the session has room for them, and follows those
// that still grow. One thread; belongs to one session at a time.
#pragma once

#include <cstdint>
#include <map>

#include "agent/fd.h"
#include "agent/members.h"
#include "agent/session.h"

namespace muster::agent {

class OutputReaders {
 public:
  OutputReaders(const Members* members, Session* session) : members_(members), session_(session) {}

  void reset(uint64_t session_number);  // a new session: the readers of the last one have gone
  void request(const v1::ReadOutput& request);
  // Sends what there is and there is room for.
  void pump();
  bool following() const { return !readers_.empty(); }

 private:
  struct Reader {
    v1::ReadOutput request;
    Fd file;
    int64_t offset = 0;
  };
  bool pump_one(Reader* reader);
  void send(const Reader& reader, std::string data, bool end, const std::string& error);

  static constexpr size_t kReadersMax = 256;
  static constexpr size_t kChunkBytes = 64 << 10;

  const Members* const members_;
  Session* const session_;
  uint64_t session_number_ = 0;
  std::map<uint64_t, Reader> readers_;  // by request
};

}  // namespace muster::agent
