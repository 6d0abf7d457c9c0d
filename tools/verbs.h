// The verbs of the one binary. A verb is a program of its own: `muster VERB ARGS…` calls its main with
// argv[0] = "muster VERB" and the arguments after it, before anything else has run: no thread exists, no file
// is open beyond the standard three. What main returns is the exit code (job.md: 0, 1, 2, 100 to 106).
//
// To add a verb: tools/verbs/NAME.cc with a function of the signature below, and its line in kVerbs
// (verbs.cc).
#pragma once

namespace muster::tools {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kJobFailed = 100;  // without a code of its own
inline constexpr int kNotFinished = 101;
inline constexpr int kNotFound = 102;
inline constexpr int kCancelled = 103;
inline constexpr int kNever = 104;  // can never run
inline constexpr int kDenied = 105;
inline constexpr int kNoServer = 106;

using VerbMain = int (*)(int argc, char** argv);

// Runs the verb that argv[1] names.
int verb_main(int argc, char** argv);

int agent_main(int argc, char** argv);   // verbs/agent.cc
int server_main(int argc, char** argv);  // verbs/server.cc

}  // namespace muster::tools
