// Where `muster local` keeps a cell: DIR/log, DIR/server, DIR/agents/NAME, the daemons' own words in
// DIR/server.log and DIR/agents/NAME.log, and DIR/local.lock, which the living `muster local` holds (flock)
// and has its pid in.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/fd.h"

namespace muster::tools {

class CellDir {
 public:
  explicit CellDir(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string log() const { return path_ + "/log"; }
  std::string server() const { return path_ + "/server"; }
  std::string server_log() const { return path_ + "/server.log"; }
  std::string agent(const std::string& name) const { return path_ + "/agents/" + name; }
  std::string agent_log(const std::string& name) const { return agent(name) + ".log"; }
  std::vector<std::string> agents() const;  // that there have ever been

  // Makes the folders.
  absl::Status create() const;
  // Held as long as the descriptor lives. FAILED_PRECONDITION: another `muster local` holds it.
  absl::StatusOr<agent::Fd> lock() const;
  // Of the `muster local` that holds the lock; 0: none does.
  pid_t running() const;

 private:
  std::string lock_path() const { return path_ + "/local.lock"; }
  std::string path_;
};

// The last lines of a file, for saying why a daemon ended.
std::string last_lines(const std::string& path, int lines);

// Ends everything that runs in the cell: `muster local`, its daemons, all tasks. Says what it ended.
int stop_local(const CellDir& dir);

}  // namespace muster::tools
