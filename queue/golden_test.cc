// Golden scripts: each queue/golden/*.txt holds commands ("> …") and, below each, what the cell did: the
// records that were appended and the answer. `GOLDEN_REWRITE=1 queue_test --gtest_filter='Golden*'` writes
// them anew; review the difference.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "queue/test_cell.h"

namespace muster::queue {
namespace {

using Words = std::vector<std::string>;

int64_t number(const std::string& text) {
  int64_t out = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text, &out)) << text;
  return out;
}

// The value of NAME=VALUE among the words.
std::string option(const Words& words, const std::string& name, const std::string& otherwise) {
  for (const std::string& word : words) {
    if (word.rfind(name + "=", 0) == 0) return word.substr(name.size() + 1);
  }
  return otherwise;
}

v1::JobSpec spec_from(const Words& words) {
  v1::JobSpec spec = test_spec(words[1], static_cast<uint32_t>(number(option(words, "replicas", "1"))),
                               number(option(words, "cpu", "1")), number(option(words, "gpu", "0")));
  spec.mutable_retries()->set_own(static_cast<uint32_t>(number(option(words, "own", "0"))));
  spec.set_priority(static_cast<int>(number(option(words, "priority", "0"))));
  spec.set_time_limit_ms(number(option(words, "time_limit", "0")));
  if (const auto after = option(words, "after", ""); !after.empty()) spec.mutable_after()->add_ok(after);
  if (const auto count = option(words, "array", ""); !count.empty())
    spec.mutable_array()->set_count(static_cast<uint32_t>(number(count)));
  spec.mutable_array()->set_running(static_cast<uint32_t>(number(option(words, "running", "0"))));
  return spec;
}

std::string told(const Outcome& outcome) {
  if (!outcome.ok()) return outcome.message;
  return outcome.duplicate ? absl::StrCat("job ", outcome.job, " again") : absl::StrCat("ok");
}

// Answers one command; the records are written by the caller.
std::string answer(TestCell& cell, const Words& words) {
  v1::Record body;
  const std::string& verb = words[0];
  const auto job = [&] { return static_cast<uint64_t>(number(words[1])); };
  if (verb == "node") {
    cell.node(words[1], static_cast<int>(number(option(words, "cpu", "4"))),
              static_cast<int>(number(option(words, "gpu", "0"))));
  } else if (verb == "submit") {
    return told(cell.submit(spec_from(words), option(words, "key", "")));
  } else if (verb == "exit") {
    cell.exit_member(words[1], static_cast<int>(number(words[2])));
  } else if (verb == "pass") {
    cell.pass(number(words[1]));
  } else if (verb == "down") {
    cell.disconnect(words[1]);
  } else if (verb == "up") {
    cell.connect(words[1]);
  } else if (verb == "crash") {
    cell.crash();
  } else if (verb == "cancel") {
    body.mutable_cancel_requested()->set_job(job());
    return told(cell.ask(body));
  } else if (verb == "drain") {
    body.mutable_node_set()->set_node(words[1]);
    body.mutable_node_set()->set_action(v1::NodeSet::DRAIN);
    return told(cell.ask(body));
  } else if (verb == "show") {
    return cell.status(job(), words.size() > 2 ? static_cast<uint32_t>(number(words[2])) + 1 : 0);
  } else {
    ADD_FAILURE() << "no command " << verb;
  }
  return "";
}

std::string play(const std::string& script) {
  TestCell cell;
  std::string out;
  for (const std::string& line : Words(absl::StrSplit(script, '\n'))) {
    if (line.rfind("#", 0) == 0) absl::StrAppend(&out, line, "\n");
    if (line.rfind("> ", 0) != 0) continue;
    absl::StrAppend(&out, line, "\n");
    cell.script.clear();
    const std::string said = answer(cell, absl::StrSplit(line.substr(2), ' '));
    for (const std::string& record : cell.script) {
      // Positions and Ticks would drown what matters.
      const Words words = absl::StrSplit(record, ' ');
      if (words.size() == 3 && words[1] != "Tick") absl::StrAppend(&out, "  ", words[1], " ", words[2], "\n");
    }
    if (!said.empty()) absl::StrAppend(&out, "  = ", said, "\n");
  }
  cell.finish();
  return out;
}

TEST(Golden, Scripts) {
  int scripts = 0;
  for (const auto& file : std::filesystem::directory_iterator("queue/golden")) {
    std::ifstream in(file.path());
    std::stringstream text;
    text << in.rdbuf();
    const std::string now = play(text.str());
    if (std::getenv("GOLDEN_REWRITE") != nullptr)
      std::ofstream(file.path()) << now;
    else
      EXPECT_EQ(now, text.str()) << file.path();
    ++scripts;
  }
  EXPECT_GE(scripts, 4);
}

}  // namespace
}  // namespace muster::queue
