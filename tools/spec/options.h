// The schema's keys as options of `muster submit` and `muster run`: `--time-limit 5m` is the key time_limit,
// `--gpu 8` is resources.gpu. An option lies over what a job file says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::spec {

enum class OptionKind {
  kScalar,       // --queue vision
  kFlag,         // --preemptible
  kList,         // --gpu-model a100,h100
  kMap,          // --env LR=0.1, again for each
  kMapOfLists,   // --require zone=a,b, again for each
  kScalarOrMap,  // --retries 3, --retries own=3,start=1
};

struct Option {
  std::string_view name;  // "time-limit"
  std::string_view path;  // "time_limit"
  OptionKind kind;
  std::string_view value;  // how the help calls it
  std::string_view help;
};
const std::vector<Option>& options();

// "--gpu" for "resources.gpu": how messages call what an option gave.
std::string option_of_path(std::string_view path);

// One use of an option on a command line.
struct Given {
  const Option* option;
  std::string value;
};

}  // namespace muster::spec
