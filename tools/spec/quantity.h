// Quantities as people write them, and back. Integers inside: milli-cores, bytes, thousandths of a device,
// milliseconds. What is printed reads back as the same number.
//
// Errors: INVALID_ARGUMENT "'16GB' is not a memory size; write …", without saying where: the caller knows.
// Nothing negative, and nothing that 64 bits can't hold, is accepted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster::spec {

absl::StatusOr<int64_t> parse_cpu_milli(std::string_view text);    // "4", "0.5", "50m"
absl::StatusOr<int64_t> parse_bytes(std::string_view text);        // "16Gi", "1.5Gi", "500M", "1024"
absl::StatusOr<int64_t> parse_gpu_milli(std::string_view text);    // "8", "0.5"
absl::StatusOr<int64_t> parse_duration_ms(std::string_view text);  // "1h30m", "250ms", "90" (seconds)
absl::StatusOr<int64_t> parse_integer(std::string_view text, int64_t least, int64_t most);

// How an amount of this resource is written: cpu, memory; everything else counts devices (gpu, gpu.a100).
using ParseQuantity = absl::StatusOr<int64_t> (*)(std::string_view);
ParseQuantity parser_of(std::string_view resource);

std::string print_cpu(int64_t milli);    // "4", "50m", "1500m"
std::string print_bytes(int64_t bytes);  // "16Gi", "500M", "1023"
std::string print_gpu(int64_t milli);    // "8", "0.5"
std::string print_duration(int64_t ms);  // "1h30m", "250ms", "0s"
std::string short_bytes(int64_t bytes);  // for tables, rounded: "15.6Gi"

}  // namespace muster::spec
