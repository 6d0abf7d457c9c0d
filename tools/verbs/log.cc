// `muster log cat|tail|verify|export`.
#include <iostream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/records.h"
#include "queue/replay.h"
#include "tools/cli/args.h"
#include "tools/cli/json.h"
#include "tools/cli/log_source.h"
#include "tools/cli/record_text.h"
#include "tools/cli/text.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

constexpr const char* kFooter =
    R"(Without --log the records come from the server; with it from the log itself, also beside a living server.

Examples:
  muster log cat --from 100 --until 120
  muster log tail -f
  muster log verify                                  live = replayed, or exit code 1
  muster log export --log embedded:cell/log > audit.jsonl)";

struct LogOptions {
  Common common;
  std::string log;
  int64_t from = 0, until = -1, lines = 10;
  bool follow = false;
};

void print(const storage::LogRecord& record, bool json) {
  if (json) {
    std::cout << record_json(record.position, record.key, record.value) << "\n";
    return;
  }
  const RecordText text = record_text(record.value);
  std::cout << absl::StrFormat("%8d  %s  %-16s  %-14s  %s\n", record.position,
                               clock_text(text.wall_ms, wall_ms()), text.type, one_line(record.key, 40),
                               one_line(text.words));
}

absl::StatusOr<std::unique_ptr<LogSource>> open_source(const LogOptions& options, Client* client) {
  if (options.log.empty()) return server_log(client);
  return direct_log(options.log);
}

int print_records(const LogOptions& options, bool json) {
  Client client(options.common.server);
  auto source = open_source(options, &client);
  if (!source.ok()) return fail(source.status());
  const absl::Status status =
      (*source)->read(options.from, options.until, false, [&](const storage::LogRecord& record) {
        print(record, json);
        return absl::OkStatus();
      });
  std::cout << std::flush;
  return status.ok() ? kDone : fail(status);
}

int tail(const LogOptions& options) {
  Client client(options.common.server);
  auto source = open_source(options, &client);
  if (!source.ok()) return fail(source.status());
  const absl::StatusOr<LogSource::Range> range = (*source)->range();
  if (!range.ok()) return fail(range.status());
  const int64_t from = std::max(range->first, range->end - options.lines);
  const absl::Status status =
      (*source)->read(from, -1, options.follow, [&](const storage::LogRecord& record) {
        print(record, options.common.json);
        std::cout << std::flush;
        return absl::OkStatus();
      });
  return status.ok() ? kDone : fail(status);
}

int say_verified(const LogOptions& options, int64_t position, const std::string& live,
                 const std::string& replayed) {
  if (options.common.json) {
    Json out = json_object();
    out["position"] = position;
    out["live"] = live;
    out["replayed"] = replayed;
    std::cout << line_of(out) << "\n";
  } else if (live == replayed) {
    std::cout << "live = replayed at position " << position << ": " << live << "\n";
  }
  if (live == replayed) return kDone;
  std::cerr << "muster: the server's state at position " << position << " is not the fold of the log: live "
            << live << ", replayed " << replayed
            << "; stop the server, move its --dir aside and start it again: it folds the log anew\n";
  return kFailed;
}

// The log, folded from its beginning up to where the server stands, must give the server's own state.
int verify(const LogOptions& options) {
  Client client(options.common.server);
  auto source = open_source(options, &client);
  if (!source.ok()) return fail(source.status());
  v1::GetStatusRequest request;
  request.set_digest(true);
  v1::ServerStatus status;
  if (absl::Status bad = client.call(&v1::Muster::Stub::GetStatus, request, &status); !bad.ok())
    return fail(bad);
  if (!status.caught_up())
    return fail(absl::UnavailableError("the server is still reading its log; try again in a moment"));
  queue::Replayer replayer;
  int64_t last = -1;
  const absl::Status folded =
      (*source)->read(0, status.position(), false, [&](const storage::LogRecord& record) {
        last = record.position;
        return replayer.add(record.position, record.timestamp_ms, record.key, record.value);
      });
  if (!folded.ok()) return fail(folded);
  if (last != status.position())
    return fail(
        absl::DataLossError(absl::StrCat("the log ends at position ", last, ", and the server has folded ",
                                         status.position(), "; is --log another cell's, or was it cut?")));
  return say_verified(options, status.position(), absl::BytesToHexString(status.digest()),
                      replayer.digest_hex());
}

}  // namespace

int log_main(int argc, char** argv) {
  Arguments app("Reads the log, and checks the server's state against it.", argv[0]);
  LogOptions options;
  app.require_subcommand(1);
  CLI::App* cat = app.add_subcommand("cat", "records, one a line");
  CLI::App* tail_verb = app.add_subcommand("tail", "the last records");
  CLI::App* verify_verb = app.add_subcommand("verify", "folds the log and compares with the server's state");
  CLI::App* export_verb = app.add_subcommand("export", "one JSON object a line: position, type, key, record");
  for (CLI::App* verb : {cat, tail_verb, verify_verb, export_verb}) {
    add_server(*verb, &options.common);
    verb->add_option("--log", options.log, "embedded:DIR or kafka:BROKERS/CELL")->type_name("LOG");
  }
  for (CLI::App* verb : {cat, tail_verb, verify_verb}) add_output(*verb, &options.common);
  for (CLI::App* verb : {cat, export_verb}) {
    verb->add_option("--from", options.from, "the first position")
        ->type_name("P")
        ->check(CLI::NonNegativeNumber);
    verb->add_option("--until", options.until, "the last position")
        ->type_name("P")
        ->check(CLI::NonNegativeNumber);
  }
  tail_verb->add_option("-n,--lines", options.lines, "default 10")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  tail_verb->add_flag("-f,--follow", options.follow, "and what comes");
  app.footer(kFooter);
  if (auto code = parse(app, argc, argv)) return *code;
  if (*tail_verb) return tail(options);
  if (*verify_verb) return verify(options);
  return print_records(options, options.common.json || *export_verb);
}

}  // namespace muster::tools
