#include "agent/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/files.h"

namespace muster::agent {
namespace {

constexpr int64_t kPeriodUs = 100'000;

// Where a controller's tree is mounted ("" for the v2 tree), and our place in it.
std::string own_group(const std::string& mounts, const std::string& own, const std::string& controller) {
  std::string mount_point;
  for (absl::string_view line : absl::StrSplit(mounts, '\n')) {
    const std::vector<std::string> f = absl::StrSplit(line, ' ');
    if (f.size() < 4) continue;
    if (controller.empty() ? f[2] == "cgroup2" : f[2] == "cgroup") {
      const std::vector<std::string> options = absl::StrSplit(f[3], ',');
      if (controller.empty() || std::count(options.begin(), options.end(), controller) != 0)
        mount_point = f[1];
    }
  }
  if (mount_point.empty()) return "";
  for (absl::string_view line : absl::StrSplit(own, '\n')) {
    const std::vector<std::string> f = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (f.size() != 3) continue;
    const std::vector<std::string> names = absl::StrSplit(f[1], ',');
    if (controller.empty() ? f[0] == "0" && f[1].empty()
                           : std::count(names.begin(), names.end(), controller) != 0) {
      // In a container the path may be the host's, and not to be seen from here: then the mount is our group.
      const std::string path = f[2] == "/" ? mount_point : absl::StrCat(mount_point, f[2]);
      return exists(path) ? path : mount_point;
    }
  }
  return "";
}

bool make_group(const std::string& path) {
  return mkdir(path.c_str(), 0755) == 0 || errno == EEXIST;
}

// Makes base/muster/node and sees whether `file` can be written there.
std::string node_group(const std::string& base, const std::string& node, const char* file) {
  if (base.empty() || !make_group(base + "/muster")) return "";
  const std::string path = absl::StrCat(base, "/muster/", node);
  if (!make_group(path) || access(absl::StrCat(path, "/", file).c_str(), W_OK) != 0) return "";
  return path;
}

// v2: a group with processes of its own can't hand out controllers, so the agent's move to a leaf beside
// `muster`.
bool delegate(const std::string& base) {
  const std::string control = base + "/cgroup.subtree_control";
  if (write_control(control, "+memory +cpu +pids").ok()) return true;
  const std::string leaf = base + "/muster-agent";
  if (!make_group(leaf)) return false;
  const std::string procs = read_file(base + "/cgroup.procs").value_or("");
  for (absl::string_view pid : absl::StrSplit(procs, '\n', absl::SkipEmpty()))
    if (!write_control(leaf + "/cgroup.procs", std::string(pid)).ok()) return false;
  return write_control(control, "+memory +cpu +pids").ok();
}

int64_t number_after(const std::string& text, const std::string& key) {
  std::istringstream in(text);
  std::string name;
  int64_t value = 0;
  while (in >> name >> value)
    if (name == key) return value;
  return 0;
}

}  // namespace

std::vector<std::string> CgroupTrees::distinct() const {
  std::set<std::string> set{memory, cpu, pids};
  set.erase("");
  return {set.begin(), set.end()};
}

CgroupTrees find_cgroups(const std::string& mounts, const std::string& own, const std::string& node,
                         std::vector<std::string>* notes) {
  CgroupTrees trees;
  const std::string unified = own_group(mounts, own, "");
  const std::string offered = read_file(unified + "/cgroup.controllers").value_or("");
  if (!unified.empty() && offered.find("memory") != std::string::npos) {
    if (delegate(unified) && make_group(unified + "/muster") &&
        write_control(unified + "/muster/cgroup.subtree_control", "+memory +cpu +pids").ok() &&
        make_group(unified + "/muster/" + node) &&
        write_control(unified + "/muster/" + node + "/cgroup.subtree_control", "+memory +cpu +pids").ok()) {
      trees.memory = trees.cpu = trees.pids = unified + "/muster/" + node;
      trees.v2 = true;
      return trees;
    }
  }
  trees.memory = node_group(own_group(mounts, own, "memory"), node, "memory.limit_in_bytes");
  trees.cpu = node_group(own_group(mounts, own, "cpu"), node, "cpu.cfs_quota_us");
  trees.pids = node_group(own_group(mounts, own, "pids"), node, "cgroup.procs");
  std::vector<std::string> absent;
  if (trees.memory.empty()) absent.push_back("memory");
  if (trees.cpu.empty()) absent.push_back("cpu");
  if (trees.pids.empty()) absent.push_back("pids");
  if (!absent.empty())
    notes->push_back(absl::StrCat("no cgroup limits: ", absl::StrJoin(absent, ", "),
                                  absent.size() == 1 ? " controller is" : " controllers are",
                                  " not writable"));
  return trees;
}

void remove_cgroups(const CgroupTrees& trees) {
  for (const std::string& path : trees.distinct()) rmdir(path.c_str());
}

int64_t own_memory_limit(const std::string& mounts, const std::string& own) {
  int64_t limit = 0;
  const std::string v1 = own_group(mounts, own, "memory");
  const std::string v2 = own_group(mounts, own, "");
  std::string text = read_file(v1 + "/memory.limit_in_bytes").value_or("");
  if (v1.empty() || text.empty()) text = read_file(v2 + "/memory.max").value_or("");
  if (!absl::SimpleAtoi(text, &limit) || limit > (int64_t{1} << 60)) return 0;
  return limit;
}

TaskCgroup::TaskCgroup(const CgroupTrees& trees, const std::string& task, const CgroupLimits& limits)
    : limits_(limits) {
  task_.v2 = trees.v2;
  if (!trees.memory.empty() && (limits.memory_bytes > 0 || trees.v2))
    task_.memory = trees.memory + "/" + task;
  if (!trees.cpu.empty() && (limits.cpu_milli > 0 || trees.v2)) task_.cpu = trees.cpu + "/" + task;
  if (!trees.pids.empty()) task_.pids = trees.pids + "/" + task;
}

std::vector<std::string> TaskCgroup::paths() const {
  return task_.distinct();
}

absl::Status TaskCgroup::create() {
  for (const std::string& path : paths())
    if (!make_group(path)) return system_error("cannot create cgroup", path, errno);
  absl::Status status;
  if (limits_.memory_bytes > 0 && !task_.memory.empty()) {
    status.Update(write_control(task_.memory + (task_.v2 ? "/memory.max" : "/memory.limit_in_bytes"),
                                std::to_string(limits_.memory_bytes)));
    // Without its own limit, swap would let the task grow past it. Absent where the kernel counts no swap.
    const std::string swap = task_.memory + (task_.v2 ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes");
    if (exists(swap))
      status.Update(write_control(swap, task_.v2 ? "0" : std::to_string(limits_.memory_bytes)));
  }
  if (limits_.cpu_milli > 0 && !task_.cpu.empty()) {
    const int64_t quota_us = std::max<int64_t>(1000, limits_.cpu_milli * kPeriodUs / 1000);
    status.Update(task_.v2 ? write_control(task_.cpu + "/cpu.max", absl::StrCat(quota_us, " ", kPeriodUs))
                           : write_control(task_.cpu + "/cpu.cfs_quota_us", std::to_string(quota_us)));
  }
  if (limits_.pids > 0 && !task_.pids.empty())
    status.Update(write_control(task_.pids + "/pids.max", std::to_string(limits_.pids)));
  return status;
}

absl::StatusOr<std::vector<Fd>> TaskCgroup::open_to_enter() const {
  std::vector<Fd> out;
  for (const std::string& path : paths()) {
    const std::string file = path + "/cgroup.procs";
    out.emplace_back(open(file.c_str(), O_WRONLY | O_CLOEXEC));
    if (!out.back()) return system_error("cannot open", file, errno);
  }
  return out;
}

int64_t TaskCgroup::oom_kills() const {
  if (task_.memory.empty()) return 0;
  return number_after(
      read_file(task_.memory + (task_.v2 ? "/memory.events" : "/memory.oom_control")).value_or(""),
      "oom_kill");
}

std::vector<pid_t> TaskCgroup::processes() const {
  std::set<pid_t> out;
  for (const std::string& path : paths()) {
    const std::string procs = read_file(path + "/cgroup.procs").value_or("");
    for (absl::string_view line : absl::StrSplit(procs, '\n', absl::SkipEmpty())) {
      int pid = 0;
      if (absl::SimpleAtoi(line, &pid) && pid > 0) out.insert(pid);
    }
  }
  return {out.begin(), out.end()};
}

void TaskCgroup::kill_all() const {
  if (task_.v2 && !task_.pids.empty() && write_control(task_.pids + "/cgroup.kill", "1").ok()) return;
  for (const pid_t pid : processes()) kill(pid, SIGKILL);
}

void TaskCgroup::remove() const {
  for (const std::string& path : paths()) rmdir(path.c_str());
}

}  // namespace muster::agent
