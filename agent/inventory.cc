#include "agent/inventory.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "agent/cgroup.h"
#include "agent/files.h"
#include "agent/nvml.h"

namespace muster::agent {
namespace {

int64_t processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return std::max<int64_t>(1, sysconf(_SC_NPROCESSORS_ONLN));
}

int64_t memory_bytes() {
  const int64_t total = memory_total_bytes(read_file("/proc/meminfo").value_or(""));
  const int64_t limit = own_memory_limit(read_file("/proc/self/mounts").value_or(""),
                                         read_file("/proc/self/cgroup").value_or(""));
  return limit > 0 ? std::min(total, limit) : total;
}

void add_devices(const AgentOptions& options, v1::NodeDescription* out) {
  if (options.gpus >= 0) {
    for (int32_t i = 0; i < options.gpus; ++i) {
      v1::Device& device = *out->add_devices();
      device.set_index(static_cast<uint32_t>(i));
      device.set_model(options.gpu_model.empty() ? "gpu" : options.gpu_model);
    }
    if (options.gpus > 0) out->add_notes("GPUs are as declared, not as found");
    return;
  }
  std::string note;
  for (const GpuDevice& found : find_gpus(&note)) {
    v1::Device& device = *out->add_devices();
    device.set_index(found.index);
    device.set_model(found.model);
    device.set_memory_bytes(found.memory_bytes);
    device.set_uuid(found.uuid);
  }
  if (!note.empty()) out->add_notes(note);
}

}  // namespace

int64_t memory_total_bytes(const std::string& meminfo) {
  std::istringstream in(meminfo);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string key;
    int64_t kilobytes = 0;
    if (words >> key >> kilobytes && key == "MemTotal:") return kilobytes * 1024;
  }
  return 0;
}

std::string local_address_towards(const std::string& server) {
  const std::string fallback = "127.0.0.1";
  const size_t colon = server.rfind(':');
  if (colon == std::string::npos) return fallback;
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(server.substr(0, colon).c_str(), server.substr(colon + 1).c_str(), &hints, &found) != 0)
    return fallback;
  std::string out = fallback;
  // Connecting a datagram socket sends nothing; it only picks the route.
  const Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in local{};
  socklen_t bytes = sizeof local;
  char text[INET_ADDRSTRLEN];
  if (fd && connect(fd.get(), found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &bytes) == 0 &&
      inet_ntop(AF_INET, &local.sin_addr, text, sizeof text) != nullptr)
    out = text;
  freeaddrinfo(found);
  return out;
}

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == 0) return "node";
  return name;
}

v1::NodeDescription describe_node(const AgentOptions& options, const std::string& address,
                                  const std::vector<std::string>& notes) {
  v1::NodeDescription out;
  out.set_address(address);
  out.set_cpu_milli(options.cpu_milli > 0 ? options.cpu_milli : processors() * 1000);
  out.set_memory_bytes(options.memory_bytes > 0 ? options.memory_bytes : memory_bytes());
  add_devices(options, &out);
  for (const auto& [name, value] : options.labels) (*out.mutable_labels())[name] = value;
  out.set_boot_id(boot_id());
  out.set_version("0.1.0");
  for (const std::string& note : notes) out.add_notes(note);
  return out;
}

}  // namespace muster::agent
