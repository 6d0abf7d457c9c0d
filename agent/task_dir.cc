#include "agent/task_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/files.h"

namespace muster::agent {
namespace {

template <typename Message>
absl::StatusOr<Message> read_message(const std::string& path) {
  absl::StatusOr<std::string> bytes = read_file(path);
  if (!bytes.ok()) return bytes.status();
  Message message;
  if (!message.ParseFromString(*bytes)) return absl::DataLossError(absl::StrCat(path, " is damaged"));
  return message;
}

}  // namespace

absl::Status TaskDir::create(const v1::PrepareOrder& order, const v1::Prepared& prepared) const {
  const TaskDir beside(path_ + ".new");
  std::error_code ignored;
  std::filesystem::remove_all(beside.path(), ignored);
  if (mkdir(beside.path().c_str(), 0755) != 0) return system_error("cannot create", beside.path(), errno);
  if (order.workdir().empty() && mkdir(beside.file("work").c_str(), 0755) != 0)
    return system_error("cannot create", beside.file("work"), errno);
  absl::Status status = create_exclusive(beside.file("order"), order.SerializeAsString(), false);
  if (status.ok()) status = create_exclusive(beside.file("prepared"), prepared.SerializeAsString(), false);
  if (status.ok() && !order.task().script().empty())
    status = create_exclusive(beside.file("script"), order.task().script(), false);
  if (!status.ok()) return status;
  if (rename(beside.path().c_str(), path_.c_str()) != 0)
    return system_error("cannot rename to", path_, errno);
  return absl::OkStatus();
}

absl::StatusOr<v1::PrepareOrder> TaskDir::order() const {
  return read_message<v1::PrepareOrder>(file("order"));
}
absl::StatusOr<v1::Prepared> TaskDir::prepared() const {
  return read_message<v1::Prepared>(file("prepared"));
}
absl::StatusOr<v1::StartOrder> TaskDir::start(uint32_t run) const {
  return read_message<v1::StartOrder>(file("start", run));
}
absl::Status TaskDir::write_start(const v1::StartOrder& order) const {
  return write_atomic(file("start", order.run()), order.SerializeAsString());
}

absl::StatusOr<v1::Exited> TaskDir::exited(uint32_t run) const {
  return read_message<v1::Exited>(file("exit", run));
}
absl::Status TaskDir::write_exited(const v1::Exited& exited) const {
  return write_atomic(file("exit", exited.run()), exited.SerializeAsString());
}

bool TaskDir::started(uint32_t run) const {
  return exists(file("started", run));
}
bool TaskDir::told(uint32_t run) const {
  return exists(file("told", run));
}
absl::Status TaskDir::mark_told(uint32_t run) const {
  return write_atomic(file("told", run), "");
}

absl::Status TaskDir::write_stop(const StopRequest& request) const {
  return write_atomic(file("stop"), absl::StrCat(request.grace_ms, " ", request.signal));
}

std::optional<StopRequest> TaskDir::stop() const {
  absl::StatusOr<std::string> text = read_file(file("stop"));
  if (!text.ok()) return std::nullopt;
  StopRequest request;
  if (!(std::istringstream(*text) >> request.grace_ms >> request.signal)) return std::nullopt;
  return request;
}

absl::StatusOr<Fd> TaskDir::lock() const {
  Fd fd(open(file("supervisor").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return system_error("cannot open", file("supervisor"), errno);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) return Fd();
  return system_error("cannot lock", file("supervisor"), errno);
}

absl::StatusOr<SupervisorId> TaskDir::supervisor() const {
  absl::StatusOr<std::string> text = read_file(file("supervisor"));
  if (!text.ok()) return text.status();
  SupervisorId id;
  if (!(std::istringstream(*text) >> id.boot >> id.pid >> id.start_time))
    return absl::NotFoundError(absl::StrCat(file("supervisor"), " names none"));
  return id;
}

std::optional<uint32_t> TaskDir::last_run(std::string_view kind) const {
  const std::string prefix = std::string(kind) + "-";
  std::optional<uint32_t> last;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(path_.c_str()), closedir);
  if (dir == nullptr) return last;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string name = entry->d_name;
    uint32_t run = 0;
    if (name.rfind(prefix, 0) != 0 || !absl::SimpleAtoi(name.substr(prefix.size()), &run)) continue;
    last = std::max(last.value_or(0), run);
  }
  return last;
}

}  // namespace muster::agent
