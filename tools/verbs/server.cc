// `muster server`: folds the log, plans, and serves clients and agents.
#include "queue/server/server.h"

#include "tools/cli/args.h"
#include "tools/verbs.h"

namespace muster::tools {

int server_main(int argc, char** argv) {
  Arguments app("Serves a cell: reads its log, places gangs, answers clients and agents", "muster server");
  server::ServerOptions options;
  app.add_option("--log", options.log, "the cell's log: embedded:DIR, kafka:BROKERS/CELL or memory:")
      ->required();
  app.add_option("--dir", options.directory, "the server's own directory: state and identity")->required();
  app.add_option("--listen", options.listen, "where to serve; port 0: any")->capture_default_str();
  app.add_option("--shared", options.shared, "a directory shared by all servers, for blobs and snapshots");
  add_duration(app, "--lease", &options.lease_ms,
               "how long a leader may be silent, for a new log (default 2s); an existing log keeps its own");
  if (const auto code = parse(app, argc, argv)) return *code;
  return server::run_server(options);
}

}  // namespace muster::tools
