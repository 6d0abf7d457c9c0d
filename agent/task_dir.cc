#include "agent/task_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/files.h"

namespace muster::agent {
namespace {

// A frame: magic, u32 length, u32 CRC32C (of what follows), kind, payload.
constexpr std::string_view kMagic = "mtsk";
constexpr size_t kHeaderBytes = 12;
enum Kind : char {
  kOrder = 'o',
  kPrepared = 'p',
  kStart = 's',
  kStop = 'x',
  kSupervisor = 'v',
  kStarted = 'S',
  kEnd = 'E',
  kTold = 't',
};

std::string frame(char kind, std::string_view payload) {
  std::string body(1, kind);
  body.append(payload);
  const auto length = static_cast<uint32_t>(body.size());
  const uint32_t crc = crc32c(body);
  std::string out(kMagic);
  out.append(reinterpret_cast<const char*>(&length), 4);
  out.append(reinterpret_cast<const char*>(&crc), 4);
  return out + body;
}

// The first whole frame's body, cut off `bytes` with all that was before it; empty: there is none.
std::string_view next_body(std::string_view* bytes) {
  for (;;) {
    const size_t at = bytes->find(kMagic);
    if (at == std::string_view::npos || bytes->size() - at < kHeaderBytes) return {};
    bytes->remove_prefix(at);
    uint32_t length = 0;
    uint32_t crc = 0;
    memcpy(&length, bytes->data() + 4, 4);
    memcpy(&crc, bytes->data() + 8, 4);
    const std::string_view body = bytes->substr(kHeaderBytes, length);
    if (length > 0 && body.size() == length && crc32c(body) == crc) {
      bytes->remove_prefix(kHeaderBytes + length);
      return body;
    }
    bytes->remove_prefix(1);  // torn: the next record begins at its own magic
  }
}

template <typename Message>
bool parse(std::string_view payload, Message* message) {
  return message->ParseFromArray(payload.data(), static_cast<int>(payload.size()));
}

void take(char kind, std::string_view payload, TaskRecord* out) {
  std::istringstream text{std::string(payload)};
  switch (kind) {
    case kStart:
      parse(payload, &out->start.emplace());
      return;
    case kStop: {
      StopRequest& stop = out->stop.emplace();
      text >> stop.grace_ms >> stop.signal;
      return;
    }
    case kSupervisor: {
      SupervisorId& id = out->supervisor.emplace();
      text >> id.boot >> id.pid >> id.start_time;
      return;
    }
    case kStarted:
      text >> out->started_run;
      return;
    case kEnd:
      parse(payload, &out->end.emplace());
      out->told = false;
      return;
    case kTold:
      out->told = true;
      return;
    default:
      return;
  }
}

}  // namespace

absl::Status TaskDir::create(const v1::PrepareOrder& order, const v1::Prepared& prepared) const {
  const TaskDir beside(path_ + ".new");
  std::error_code ignored;
  if (exists(beside.path())) std::filesystem::remove_all(beside.path(), ignored);
  if (mkdir(beside.path().c_str(), 0755) != 0) return system_error("cannot create", beside.path(), errno);
  if (order.workdir().empty() && mkdir(beside.file("work").c_str(), 0755) != 0)
    return system_error("cannot create", beside.file("work"), errno);
  absl::Status status = create_file(beside.file("task"), frame(kOrder, order.SerializeAsString()) +
                                                             frame(kPrepared, prepared.SerializeAsString()));
  if (status.ok() && !order.task().script().empty())
    status = create_file(beside.file("script"), order.task().script());
  if (!status.ok()) return status;
  if (rename(beside.path().c_str(), path_.c_str()) != 0)
    return system_error("cannot rename to", path_, errno);
  return absl::OkStatus();
}

absl::StatusOr<TaskRecord> TaskDir::read() const {
  absl::StatusOr<std::string> bytes = read_file(file("task"), 64 << 20);
  if (!bytes.ok()) return bytes.status();
  TaskRecord out;
  bool order = false;
  bool prepared = false;
  std::string_view rest = *bytes;
  for (std::string_view body = next_body(&rest); !body.empty(); body = next_body(&rest)) {
    const std::string_view payload = body.substr(1);
    if (body[0] == kOrder) {
      order = parse(payload, &out.order);
    } else if (body[0] == kPrepared) {
      prepared = parse(payload, &out.prepared);
    } else {
      take(body[0], payload, &out);
    }
  }
  if (!order || !prepared) return absl::DataLossError(absl::StrCat(file("task"), " has no whole order"));
  return out;
}

absl::Status TaskDir::append(char kind, std::string_view payload, bool synced) const {
  const std::string path = file("task");
  const std::string bytes = frame(kind, payload);
  const Fd fd(open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd) return system_error("cannot open", path, errno);
  if (write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return system_error("cannot write", path, errno);
  if (!synced) return absl::OkStatus();
  if (fdatasync(fd.get()) != 0) return system_error("cannot sync", path, errno);
  return sync_path(path_);
}

absl::Status TaskDir::add_start(const v1::StartOrder& order) const {
  return append(kStart, order.SerializeAsString(), false);
}
absl::Status TaskDir::add_stop(const StopRequest& request) const {
  return append(kStop, absl::StrCat(request.grace_ms, " ", request.signal), false);
}
absl::Status TaskDir::add_supervisor(const SupervisorId& id) const {
  return append(kSupervisor, absl::StrCat(id.boot, " ", id.pid, " ", id.start_time), false);
}
absl::Status TaskDir::add_started(uint32_t run) const {
  return append(kStarted, absl::StrCat(run), true);
}
absl::Status TaskDir::add_end(const v1::Exited& end) const {
  return append(kEnd, end.SerializeAsString(), false);
}
absl::Status TaskDir::add_told() const {
  return append(kTold, "", false);
}
absl::Status TaskDir::sync() const {
  return sync_path(file("task"));
}

absl::StatusOr<Fd> TaskDir::lock() const {
  Fd fd(open(file("task").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return system_error("cannot open", file("task"), errno);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) return Fd();
  return system_error("cannot lock", file("task"), errno);
}

}  // namespace muster::agent
