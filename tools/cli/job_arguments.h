// What `submit` and `run` take: job files, the schema's keys as options, and a command after `--`.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/job.pb.h"
#include "tools/cli/args.h"
#include "tools/spec/job_file.h"

namespace muster::tools {

struct JobArguments {
  std::vector<std::string> files;
  std::string key;  // --key
  spec::Overrides overrides;
};

void add_job_arguments(CLI::App& app, JobArguments* arguments);

// Takes `-- command…` off, so that CLI11 never sees the command's own options.
std::vector<std::string> split_command(int argc, char** argv, std::vector<std::string>* command);

// The jobs that files, options and command make, in the order of the files; the user filled in.
absl::StatusOr<std::vector<v1::JobSpec>> read_jobs(const JobArguments& arguments);

}  // namespace muster::tools
