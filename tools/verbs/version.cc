// `muster version`.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "tools/cli/args.h"
#include "tools/cli/json.h"
#include "tools/verbs.h"

namespace muster::tools {

int version_main(int argc, char** argv) {
  Arguments app("Prints the version, and the log format that it reads and writes.", argv[0]);
  Common common;
  add_output(app, &common);
  if (auto code = parse(app, argc, argv)) return *code;
  if (common.json) {
    Json out = json_object();
    out["version"] = MUSTER_VERSION;
    out["format"] = kFormat;
    std::cout << line_of(out) << "\n";
  } else {
    std::cout << "muster " << MUSTER_VERSION << ", log format " << kFormat << "\n";
  }
  return kDone;
}

}  // namespace muster::tools
