// What `muster agent` says of arguments that it can't take. A right one would run an agent: that is agent/'s
// to test.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/verbs.h"

namespace muster::tools {
namespace {

struct Case {
  std::vector<std::string> arguments;
  std::string message;
};

TEST(AgentVerb, SaysWhatIsWrongWithItsArguments) {
  const std::vector<Case> cases = {
      {{"--label", "rack"}, "--label: 'rack' is not KEY=VALUE"},
      {{"--server", "here"}, "--server: 'here' is not HOST:PORT"},
      {{"--server", "here:70,there:x"}, "--server: 'there:x' is not HOST:PORT"},
      {{"--server", ","}, "--server: names none"},
      {{"--cpu", "many"}, "--cpu: 'many' is not a number of CPUs; write 4, 0.5 or 500m"},
      {{"--memory", "0"}, "--memory: '0' must be above 0"},
      {{"--gpu-model", "a100"}, "--gpu-model: names the model of declared devices; give --gpu too"},
      {{"--ports", "80-90"}, "--ports: '80-90' is not FIRST-LAST with 1024 <= FIRST <= LAST <= 65535"},
      {{"--name", "a/b"}, "--name: at most 200 characters, without '/' and line ends"},
      {{"--dir", ""}, "--dir: a path without line ends"},
  };
  for (const Case& one : cases) {
    std::vector<std::string> words = {"muster agent", "--dir", "/nowhere"};
    if (one.arguments.front() == "--dir") words.resize(1);
    words.insert(words.end(), one.arguments.begin(), one.arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::testing::internal::CaptureStderr();
    const int code = agent_main(static_cast<int>(words.size()), argv.data());
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "muster agent: " + one.message + " (`muster agent --help` says more)\n");
    EXPECT_EQ(code, kUsage);
  }
}

}  // namespace
}  // namespace muster::tools
