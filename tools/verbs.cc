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
int cancel_main(int argc, char** argv);
int hold_main(int argc, char** argv);
int release_main(int argc, char** argv);
int requeue_main(int argc, char** argv);
int retry_main(int argc, char** argv);
int update_main(int argc, char** argv);
int ls_main(int argc, char** argv);
int show_main(int argc, char** argv);
int why_main(int argc, char** argv);
int logs_main(int argc, char** argv);
int events_main(int argc, char** argv);
int wait_main(int argc, char** argv);
int node_main(int argc, char** argv);
int queue_main(int argc, char** argv);
int policy_main(int argc, char** argv);
int local_main(int argc, char** argv);
int log_main(int argc, char** argv);
int status_main(int argc, char** argv);
int bench_main(int argc, char** argv);
int sim_main(int argc, char** argv);
int version_main(int argc, char** argv);

namespace {

struct Verb {
  const char* name;
  const char* group;  // of the help; null: planned
  const char* help;
  VerbMain main;
};

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kVerbs = {
      {"local", "start", "a whole cell on this machine", local_main},
      {"server", "start", "one server of a cell", server_main},
      {"agent", "start", "the agent of a node", agent_main},
      {"submit", "submit", "job files, or `-- command`; prints the ids", submit_main},
      {"run", "submit", "submit one job, follow its output, end with its exit code", run_main},
      {"retry", "submit", "a new job like one that has ended", retry_main},
      {"ls", "watch", "jobs, the newest first", ls_main},
      {"show", "watch", "one job, its attempts and members", show_main},
      {"why", "watch", "why a job has not started, and what would help", why_main},
      {"logs", "watch", "what its members wrote", logs_main},
      {"events", "watch", "what the log says of it", events_main},
      {"wait", "watch", "until it has ended; ends with its exit code", wait_main},
      {"cancel", "act", "stop jobs: signal, grace, kill", cancel_main},
      {"hold", "act", "keep pending jobs from starting", hold_main},
      {"release", "act", "let held jobs start", release_main},
      {"requeue", "act", "stop running jobs and queue them again", requeue_main},
      {"update", "act", "change a job: priority, time_limit, queue, …", update_main},
      {"node", "operate", "ls, show, drain, undrain, quarantine", node_main},
      {"queue", "operate", "ls, set, rm", queue_main},
      {"policy", "operate", "show, set", policy_main},
      {"log", "operate", "cat, tail, verify, export", log_main},
      {"status", "operate", "the server, its cell and its log", status_main},
#ifdef MUSTER_HAS_BENCH_VERB
      {"bench", "operate", "how fast it is, beside what its log could do", bench_main},
#endif
      {"sim", "operate", "a scenario in virtual time, by the real engine and planner", sim_main},
      {"version", "operate", "of this program", version_main},
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
