#include "agent/node_identity.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <map>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/files.h"

namespace muster::agent {

absl::StatusOr<Fd> lock_agent_dir(const std::string& dir) {
  const std::string path = dir + "/agent.lock";
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return system_error("cannot open", path, errno);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return system_error("cannot lock", path, errno);
  return absl::AlreadyExistsError(
      absl::StrCat("another agent runs in ", dir, ": stop it, or choose another --dir"));
}

absl::StatusOr<NodeIdentity> load_identity(const std::string& dir, const std::string& asked_name,
                                           const std::string& default_name, bool* fresh) {
  *fresh = false;
  absl::StatusOr<std::string> text = read_file(dir + "/node");
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  NodeIdentity identity;
  if (text.ok()) {
    std::map<std::string, std::string> fields;
    std::istringstream in(*text);
    for (std::string line; std::getline(in, line);) {
      const size_t equals = line.find('=');
      if (equals != std::string::npos) fields[line.substr(0, equals)] = line.substr(equals + 1);
    }
    identity.name = fields["name"];
    identity.cell = fields["cell"];
    identity.boot = fields["boot"];
    if (identity.name.empty() || !absl::SimpleAtoi(fields["incarnation"], &identity.incarnation))
      return absl::DataLossError(
          absl::StrCat(dir, "/node is damaged: move the directory away to begin a new node"));
    if (!asked_name.empty() && asked_name != identity.name)
      return absl::FailedPreconditionError(absl::StrCat(dir, " belongs to node '", identity.name, "', not '",
                                                        asked_name, "': use its name, or another --dir"));
  } else {
    identity.name = asked_name.empty() ? default_name : asked_name;
  }
  if (identity.incarnation == 0 || identity.boot.empty() || identity.boot != boot_id()) {
    *fresh = true;
    identity.incarnation = random_nonzero();
    identity.boot = boot_id();
  }
  return identity;
}

absl::Status save_identity(const std::string& dir, const NodeIdentity& identity) {
  const std::string path = dir + "/node";
  absl::Status status = write_atomic(
      path, absl::StrCat("name=", identity.name, "\ncell=", identity.cell,
                         "\nincarnation=", identity.incarnation, "\nboot=", identity.boot, "\n"));
  if (status.ok()) status = sync_path(path);
  if (status.ok()) status = sync_path(dir);
  return status;
}

}  // namespace muster::agent
