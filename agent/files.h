// Small files, read and written whole. Used by the agent, its spawner and its supervisors alike, so nothing
// here starts a thread or keeps state. Errors name the path and the system's reason.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::agent {

// "WHAT PATH: No such file or directory", as UNAVAILABLE; NOT_FOUND for ENOENT.
absl::Status system_error(std::string_view what, std::string_view path, int error);

// The whole file; one that is longer than max_bytes is an error.
absl::StatusOr<std::string> read_file(const std::string& path, size_t max_bytes = 16 << 20);

// Written beside it and renamed: a reader sees the old content or the new one. Survives the writer's death;
// survives the machine's only after `sync_path` of the file and of its directory.
absl::Status write_atomic(const std::string& path, std::string_view bytes);

// A new file with this content; ALREADY_EXISTS when it is there.
absl::Status create_file(const std::string& path, std::string_view bytes);

// One write to an existing file, as the kernel's control files want it.
absl::Status write_control(const std::string& path, std::string_view text);

absl::Status sync_path(const std::string& path);  // a file or a directory
absl::Status make_directories(const std::string& path);
bool exists(const std::string& path);

// Writes all of it; false with errno on failure.
bool write_all(int fd, std::string_view bytes);

uint32_t crc32c(std::string_view bytes);

std::string boot_id();      // of this boot of the machine; "" when the kernel doesn't say
int64_t boottime_ms();      // CLOCK_BOOTTIME: runs on while the machine sleeps
uint64_t random_nonzero();  // from the kernel

}  // namespace muster::agent
