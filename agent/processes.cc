#include "agent/processes.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "agent/files.h"

namespace muster::agent {
namespace {

// The fields of /proc/PID/stat after the command's name, which may hold anything: state, ppid, …
std::optional<std::vector<std::string>> stat_fields(pid_t pid) {
  absl::StatusOr<std::string> text = read_file(absl::StrCat("/proc/", pid, "/stat"));
  if (!text.ok()) return std::nullopt;
  const size_t end = text->rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream in(text->substr(end + 1));
  std::vector<std::string> fields;
  for (std::string field; in >> field;) fields.push_back(std::move(field));
  return fields;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir("/proc"), closedir);
  if (dir == nullptr) return out;
  while (const dirent* entry = readdir(dir.get())) {
    if (const int pid = atoi(entry->d_name); pid > 0) out.push_back(pid);
  }
  return out;
}

}  // namespace

std::optional<uint64_t> process_start_time(pid_t pid) {
  const auto fields = stat_fields(pid);
  if (!fields || fields->size() < 20) return std::nullopt;
  return strtoull((*fields)[19].c_str(), nullptr, 10);
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  for (const pid_t pid : all_processes()) {
    const auto fields = stat_fields(pid);
    if (fields && fields->size() > 1 && (*fields)[1] == std::to_string(parent)) out.push_back(pid);
  }
  return out;
}

std::vector<pid_t> processes_with(const std::map<std::string, std::string>& environment) {
  std::vector<pid_t> out;
  for (const pid_t pid : all_processes()) {
    if (pid == getpid()) continue;
    absl::StatusOr<std::string> bytes = read_file(absl::StrCat("/proc/", pid, "/environ"));
    if (!bytes.ok() || bytes->empty()) continue;
    std::set<std::string> entries;
    std::istringstream in(*bytes);
    for (std::string entry; std::getline(in, entry, '\0');) entries.insert(std::move(entry));
    const bool all = std::all_of(environment.begin(), environment.end(),
                                 [&](const auto& e) { return entries.count(e.first + "=" + e.second) != 0; });
    if (all) out.push_back(pid);
  }
  return out;
}

int signal_number(const std::string& name) {
  const std::string bare = name.rfind("SIG", 0) == 0 ? name.substr(3) : name;
  for (int number = 1; number < NSIG; ++number) {
    const char* known = sigabbrev_np(number);
    if (known != nullptr && bare == known) return number;
  }
  return 0;
}

}  // namespace muster::agent
