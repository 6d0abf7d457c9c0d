#include "tools/verbs.h"

#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "tools/spec/nearest.h"

namespace muster::tools {

int submit_main(int argc, char** argv);
int run_main(int argc, char** argv);
int ls_main(int argc, char** argv);
int show_main(int argc, char** argv);
int logs_main(int argc, char** argv);
int wait_main(int argc, char** argv);
int version_main(int argc, char** argv);

namespace {

struct Verb {
  const char* name;
  const char* group;  // of the help; null: planned
  const char* help;
  VerbMain main;
};

constexpr const char* kSubmit = "submit";
constexpr const char* kWatch = "watch";
constexpr const char* kOther = "other";

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kVerbs = {
#ifdef MUSTER_HAS_SERVER_VERB
      {"server", "start", "one server of a cell", server_main},
#endif
#ifdef MUSTER_HAS_AGENT_VERB
      {"agent", "start", "the agent of a node", agent_main},
#endif
      {"submit", kSubmit, "job files, or `-- command`; prints the ids", submit_main},
      {"run", kSubmit, "submit one job, follow its output, end with its exit code", run_main},
      {"ls", kWatch, "jobs, the newest first", ls_main},
      {"show", kWatch, "one job, its attempts and members", show_main},
      {"logs", kWatch, "what its members wrote", logs_main},
      {"wait", kWatch, "until it has ended; ends with its exit code", wait_main},
      {"version", kOther, "of this program", version_main},
      {"plan", nullptr, "", nullptr},
      {"sweep", nullptr, "", nullptr},
      {"top", nullptr, "", nullptr},
      {"exec", nullptr, "", nullptr},
      {"shell", nullptr, "", nullptr},
      {"forward", nullptr, "", nullptr},
      {"capacity", nullptr, "", nullptr},
      {"autoscaler", nullptr, "", nullptr},
      {"replay", nullptr, "", nullptr},
      {"whatif", nullptr, "", nullptr},
      {"snapshot", nullptr, "", nullptr},
      {"sim", nullptr, "", nullptr},
  };
  return kVerbs;
}

int help() {
  std::cout << "muster: a queue and gang scheduler whose truth is a log.\n\n"
               "  muster VERB …          `muster VERB --help` says more\n";
  const char* group = "";
  for (const Verb& verb : verbs()) {
    if (verb.group == nullptr) continue;
    if (std::strcmp(group, verb.group) != 0) std::cout << "\n" << verb.group << "\n";
    group = verb.group;
    std::printf("  %-10s %s\n", verb.name, verb.help);
    std::fflush(stdout);
  }
  std::cout
      << "\nThe server is MUSTER_SERVER (default 127.0.0.1:7070). Jobs are named 12, 12[3] (an element of "
         "an\n"
         "array), 12.actor.0 (a member), 12@2 (an attempt), or by their name. Reading verbs take -o json.\n"
         "Exit codes: 0 done, 1 failed, 2 usage, 100 the job failed without a code of its own, 101 not\n"
         "finished, 102 not found, 103 cancelled, 104 can never run, 105 denied or over quota, 106 no "
         "server.\n";
  return kDone;
}

int unknown(const std::string& word) {
  std::vector<std::string> names = {"help"};
  for (const Verb& verb : verbs()) {
    if (verb.group != nullptr) names.emplace_back(verb.name);
  }
  std::cerr << "muster: there is no verb '" << word << "'" << spec::did_you_mean(word, names)
            << " `muster help` lists them\n";
  return kUsage;
}

}  // namespace

int verb_main(int argc, char** argv) {
  const std::string word = argc < 2 ? "help" : argv[1];
  if (word == "help" && argc > 2) {
    // `muster help submit` is `muster submit --help`.
    std::string program = argv[0], verb = argv[2], flag = "--help";
    char* again[] = {program.data(), verb.data(), flag.data(), nullptr};
    return verb_main(3, again);
  }
  if (word == "help" || word == "--help" || word == "-h") return help();
  for (const Verb& verb : verbs()) {
    if (word != verb.name) continue;
    if (verb.main == nullptr) {
      std::cerr << "muster: '" << word << "' is planned and not served yet by this release\n";
      return kUsage;
    }
    std::string name = "muster " + word;
    argv[1] = name.data();
    return verb.main(argc - 1, argv + 1);
  }
  return unknown(word);
}

}  // namespace muster::tools
