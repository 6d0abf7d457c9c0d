// What cannot happen stops the process: it restarts from the log. Always on, in every build.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace muster::scheduler {

[[noreturn]] inline void defect(const std::string& what) {
  std::fprintf(stderr, "muster: defect in the scheduler: %s\n", what.c_str());
  std::abort();
}

inline void check(bool holds, const char* what) {
  if (!holds) defect(what);
}

}  // namespace muster::scheduler
