// A job file (YAML) and the options beside it → JobSpec, and back.
//
// Errors are INVALID_ARGUMENT and name file, line, key and what is allowed:
//   job.yaml:3: unknown key 'replicsa'; did you mean 'replicas'?
//   job.yaml:7: 'secrets' is planned and not served yet by this release
// What needs more than the text (a queue's rules, a gang's size, a dependency) is the server's to check.
// Defaults are the server's to fill: a field that nobody gave stays unset.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/job.pb.h"
#include "tools/spec/options.h"

namespace muster::spec {

inline constexpr size_t kFileBytesMax = 1 << 20;
inline constexpr size_t kFileJobsMax = 10'000;
inline constexpr size_t kSweepValuesMax = 100'000;  // of one parameter

// What lies over each job of the file.
struct Overrides {
  std::vector<Given> options;
  std::vector<std::string> command;  // the words after `--`; empty: none
};

// Each document of `text` (they are parted by "---") is a job. `file` is what the messages call it,
// `directory` what relative paths in it are seen from.
absl::StatusOr<std::vector<v1::JobSpec>> parse_job_file(std::string_view text, const std::string& file,
                                                        const std::string& directory,
                                                        const Overrides& overrides = {});

// A job from the command line alone.
absl::StatusOr<v1::JobSpec> parse_job_options(const Overrides& overrides, const std::string& directory);

// The same job as a job file; it reads back as the same spec. A single task named "main" is written without
// `tasks:`.
std::string print_job_file(const v1::JobSpec& spec);

}  // namespace muster::spec
