#include "agent/nvml.h"

#include <dlfcn.h>

#include <cctype>
#include <memory>
#include <set>

namespace muster::agent {
namespace {

// From nvml.h, whose ABI is stable.
using Device = void*;
struct Memory {
  unsigned long long total, free, used;
};
constexpr int kSuccess = 0;
constexpr unsigned kTextBytes = 96;

struct Library {
  void* handle = nullptr;
  ~Library() {
    if (handle != nullptr) dlclose(handle);
  }
  template <typename Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(dlsym(handle, name));
  }
};

}  // namespace

std::string gpu_model(const std::string& product_name) {
  static const std::set<std::string> kVendorWords = {"nvidia", "tesla",    "geforce", "quadro", "graphics",
                                                     "device", "instinct", "amd",     "titan"};
  std::vector<std::string> words(1);
  for (const char c : product_name) {
    if (isalnum(static_cast<unsigned char>(c)) != 0) {
      words.back() += static_cast<char>(tolower(static_cast<unsigned char>(c)));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty() || kVendorWords.count(words[i]) != 0) continue;
    const bool family = words[i] == "rtx" || words[i] == "gtx";
    if (!family || i + 1 >= words.size() || words[i + 1].empty()) return words[i];
    // "RTX 4090" is known by both words, "RTX A6000" by the second.
    return isdigit(static_cast<unsigned char>(words[i + 1][0])) != 0 ? words[i] + words[i + 1] : words[i + 1];
  }
  return "gpu";
}

std::vector<GpuDevice> find_gpus(std::string* note) {
  std::vector<GpuDevice> out;
  const Library library{dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
  if (library.handle == nullptr) {
    *note = "no GPUs: libnvidia-ml.so.1 is not installed";
    return out;
  }
  const auto init = library.find<int (*)()>("nvmlInit_v2");
  const auto shutdown = library.find<int (*)()>("nvmlShutdown");
  const auto count_of = library.find<int (*)(unsigned*)>("nvmlDeviceGetCount_v2");
  const auto by_index = library.find<int (*)(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
  const auto name_of = library.find<int (*)(Device, char*, unsigned)>("nvmlDeviceGetName");
  const auto memory_of = library.find<int (*)(Device, Memory*)>("nvmlDeviceGetMemoryInfo");
  const auto uuid_of = library.find<int (*)(Device, char*, unsigned)>("nvmlDeviceGetUUID");
  if (!init || !shutdown || !count_of || !by_index || !name_of || !memory_of || !uuid_of) {
    *note = "no GPUs: libnvidia-ml.so.1 lacks a function that is needed";
    return out;
  }
  if (const int code = init(); code != kSuccess) {
    *note = "no GPUs: NVML does not start, its code is " + std::to_string(code);
    return out;
  }
  unsigned count = 0;
  if (count_of(&count) != kSuccess) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    char name[kTextBytes] = "";
    char uuid[kTextBytes] = "";
    Memory memory{};
    if (by_index(i, &device) != kSuccess || name_of(device, name, kTextBytes) != kSuccess ||
        uuid_of(device, uuid, kTextBytes) != kSuccess || memory_of(device, &memory) != kSuccess)
      continue;  // a device that can't be asked can't be given to anyone
    out.push_back({i, gpu_model(name), static_cast<int64_t>(memory.total), uuid});
  }
  shutdown();
  if (out.empty()) *note = "no GPUs: NVML finds none";
  return out;
}

}  // namespace muster::agent
