// NVIDIA's devices, asked of the driver's own library, which is loaded at run time: a machine without it has
// none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::agent {

struct GpuDevice {
  uint32_t index = 0;
  std::string model;  // as `gpu_model:` names it: "a100", "h200", "rtx4090"
  int64_t memory_bytes = 0;
  std::string uuid;
};

// `note` says why there are none, when there are none.
std::vector<GpuDevice> find_gpus(std::string* note);

// "NVIDIA A100-SXM4-80GB" → "a100".
std::string gpu_model(const std::string& product_name);

}  // namespace muster::agent
