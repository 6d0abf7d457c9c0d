#include "tools/cli/job_arguments.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "tools/cli/client.h"

namespace muster::tools {
namespace {

std::string read_all(std::istream& in) {
  std::string text;
  std::vector<char> buffer(64 * 1024);
  while (text.size() <= spec::kFileBytesMax &&
         in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()))) {
    text.append(buffer.data(), buffer.size());
  }
  text.append(buffer.data(), static_cast<size_t>(in.gcount()));
  return text;
}

absl::StatusOr<std::vector<v1::JobSpec>> read_file(const std::string& file,
                                                   const spec::Overrides& overrides) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (file == "-")
    return spec::parse_job_file(read_all(std::cin), "stdin", fs::current_path(ignored).string(), overrides);
  if (fs::is_directory(file, ignored))
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": is a directory; name a job file, or `-` for stdin"));
  std::ifstream in(file, std::ios::binary);
  if (!in) return absl::InvalidArgumentError(absl::StrCat(file, ": ", std::strerror(errno)));
  return spec::parse_job_file(read_all(in), file, fs::absolute(file, ignored).parent_path().string(),
                              overrides);
}

}  // namespace

void add_job_arguments(CLI::App& app, JobArguments* arguments) {
  app.add_option("FILE", arguments->files, "job files (YAML); `-` is stdin")->type_name("");
  app.add_option("--key", arguments->key, "the idempotency key: the same key again is the same job")
      ->type_name("KEY")
      ->group("Submitting");
  for (const spec::Option& option : spec::options()) {
    const std::string name = absl::StrCat("--", std::string(option.name));
    const spec::Option* at = &option;
    const auto given = [arguments, at](const std::string& value) {
      arguments->overrides.options.push_back({at, value});
    };
    CLI::Option* added = nullptr;
    if (option.kind == spec::OptionKind::kFlag) {
      added = app.add_flag_callback(
          name, [given] { given("true"); }, std::string(option.help));
    } else {
      const auto all = [given](const std::vector<std::string>& values) {
        for (const std::string& value : values) given(value);
      };
      added = app.add_option_function<std::vector<std::string>>(name, all, std::string(option.help));
      added->type_name(std::string(option.value))->allow_extra_args(false);
    }
    added->group(option.help.find("planned") == std::string_view::npos ? "The job (keys of the job file)"
                                                                       : "");
  }
}

std::vector<std::string> split_command(int argc, char** argv, std::vector<std::string>* command) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0) {
      command->assign(argv + i + 1, argv + argc);
      break;
    }
    arguments.emplace_back(argv[i]);
  }
  return arguments;
}

absl::StatusOr<std::vector<v1::JobSpec>> read_jobs(const JobArguments& arguments) {
  std::vector<v1::JobSpec> jobs;
  if (arguments.files.empty()) {
    if (arguments.overrides.command.empty() && arguments.overrides.options.empty())
      return absl::InvalidArgumentError("nothing to submit: give a job file, or `-- command`");
    std::error_code ignored;
    const auto directory = std::filesystem::current_path(ignored).string();
    absl::StatusOr<v1::JobSpec> job = spec::parse_job_options(arguments.overrides, directory);
    if (!job.ok()) return job.status();
    jobs.push_back(*std::move(job));
  }
  for (const std::string& file : arguments.files) {
    absl::StatusOr<std::vector<v1::JobSpec>> more = read_file(file, arguments.overrides);
    if (!more.ok()) return more.status();
    std::move(more->begin(), more->end(), std::back_inserter(jobs));
  }
  if (!arguments.key.empty() && jobs.size() > 1)
    return absl::InvalidArgumentError(
        absl::StrCat("--key names one job, and these are ", jobs.size(), "; submit them one by one"));
  for (v1::JobSpec& job : jobs) {
    if (job.user().empty()) job.set_user(login_name());
  }
  return jobs;
}

}  // namespace muster::tools
