// How a verb reads its arguments: CLI11, with this program's messages and exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace muster::tools {

// What every verb that talks to a server takes.
struct Common {
  std::string server;  // --server, else MUSTER_SERVER, else 127.0.0.1:7070
  bool json = false;   // -o json
};
void add_server(CLI::App& app, Common* common);
void add_output(CLI::App& app, Common* common);

// A verb's parser; `name` is "muster VERB".
class Arguments : public CLI::App {
 public:
  Arguments(const std::string& about, const std::string& name);
};

// Parses. A value: the verb ends with it at once (help was shown: 0; usage: 2, said on stderr).
std::optional<int> parse(CLI::App& app, int argc, char** argv);
std::optional<int> parse(CLI::App& app, std::vector<std::string> arguments);

// "muster VERB: MESSAGE; see `muster VERB --help`" on stderr; gives kUsage.
int usage_error(const CLI::App& app, const std::string& message);

// An option whose value is a time ("1h30m").
CLI::Option* add_duration(CLI::App& app, const std::string& name, int64_t* ms, const std::string& help);

}  // namespace muster::tools
