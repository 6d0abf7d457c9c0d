#include "agent/output_readers.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster::agent {

void OutputReaders::reset(uint64_t session_number) {
  session_number_ = session_number;
  readers_.clear();
}

void OutputReaders::request(const v1::ReadOutput& request) {
  if (request.cancel()) {
    readers_.erase(request.request());
    return;
  }
  Reader reader;
  reader.request = request;
  reader.offset = std::max<int64_t>(0, request.from());
  if (readers_.size() >= kReadersMax)
    return send(reader, "", true,
                absl::StrCat("the agent serves ", kReadersMax, " readers, its most; ask again later"));
  readers_[request.request()] = std::move(reader);
}

void OutputReaders::pump() {
  bool sent = true;
  while (sent && session_->output_room() > 0) {
    sent = false;
    for (auto it = readers_.begin(); it != readers_.end() && session_->output_room() > 0;) {
      const int64_t before = it->second.offset;
      const bool goes_on = pump_one(&it->second);
      sent = sent || it->second.offset != before;
      it = goes_on ? std::next(it) : readers_.erase(it);
    }
  }
}

// False: the reader has all that it will get.
bool OutputReaders::pump_one(Reader* reader) {
  bool live = false;
  const std::string dir =
      members_->files_of(reader->request.member(), &live);  // before reading: then the end is seen
  if (!reader->file) {
    if (dir.empty()) {
      send(*reader, "", true, "its output is not on this node (any more)");
      return false;
    }
    reader->file.reset(open((dir + "/output.log").c_str(), O_RDONLY | O_CLOEXEC));
  }
  std::string data(kChunkBytes, 0);
  const ssize_t n = reader->file ? pread(reader->file.get(), data.data(), data.size(), reader->offset) : 0;
  data.resize(n > 0 ? static_cast<size_t>(n) : 0);
  const bool wait = live && reader->request.follow();
  if (data.empty()) {
    if (wait) return true;
    send(*reader, "", true, n < 0 ? "its output can't be read" : "");
    return false;
  }
  const auto bytes = static_cast<int64_t>(data.size());
  send(*reader, std::move(data), false, "");
  reader->offset += bytes;
  return true;
}

void OutputReaders::send(const Reader& reader, std::string data, bool end, const std::string& error) {
  v1::AgentMessage message;
  v1::OutputChunk& chunk = *message.mutable_output();
  chunk.set_request(reader.request.request());
  chunk.set_offset(reader.offset);
  chunk.set_data(std::move(data));
  chunk.set_end(end);
  chunk.set_error(error);
  session_->send(session_number_, std::move(message));
}

}  // namespace muster::agent
