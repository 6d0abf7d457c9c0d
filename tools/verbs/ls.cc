// `muster ls`: jobs, the newest first.
#include <iostream>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "tools/cli/args.h"
#include "tools/cli/client.h"
#include "tools/cli/job_view.h"
#include "tools/cli/names.h"
#include "tools/cli/text.h"
#include "tools/spec/nearest.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

constexpr uint32_t kPageMax = 1000;

int64_t since(const v1::JobState& state) {
  if (terminal(state.phase())) return state.ended_wall_ms();
  if (state.phase() == v1::PENDING || !state.has_attempt()) return state.submitted_wall_ms();
  return state.attempt().running_wall_ms() > 0 ? state.attempt().running_wall_ms()
                                               : state.attempt().placed_wall_ms();
}

// "a1 ×2, a2"
std::string nodes(const v1::JobState& state) {
  if (terminal(state.phase()) || state.phase() == v1::PENDING) return "";
  std::map<std::string, int> count;
  for (const v1::MemberState& member : state.attempt().members()) ++count[member.node()];
  std::string out;
  for (const auto& [node, members] : count) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", node);
    if (members > 1) absl::StrAppend(&out, " ×", members);
  }
  return out;
}

void print_table(const v1::ListJobsReply& reply, int64_t now_ms) {
  Table table({">ID", "NAME", "USER", "QUEUE", "STATE", ">MEMBERS", "SINCE", "WHERE / WHY"});
  for (const v1::JobView& view : reply.jobs()) {
    const v1::JobState& state = view.state();
    std::string why = nodes(state);
    const std::string words = why_words(state, view.pending_reason());
    if (!words.empty()) why = why.empty() ? words : why + ": " + words;
    const int members = state.phase() == v1::PENDING ? 0 : state.attempt().members_size();
    table.add(
        {job_name(state.id(), state.element()), one_line(state.name(), 24), one_line(state.user(), 12),
         one_line(state.queue(), 20), absl::StrCat(phase_name(state.phase()), view.unreachable() ? "?" : ""),
         members == 0 ? "-" : absl::StrCat(members), when_text(since(state), now_ms), one_line(why, 80)});
  }
  table.print(std::cout);
}

absl::Status read_phases(const std::vector<std::string>& states, v1::ListJobsRequest* request) {
  std::vector<std::string> known;
  for (int i = 0; i < v1::Phase_descriptor()->value_count(); ++i)
    known.push_back(v1::Phase_descriptor()->value(i)->name());
  for (const std::string& state : states) {
    v1::Phase phase;
    const std::string upper = absl::AsciiStrToUpper(state);
    if (!v1::Phase_Parse(upper, &phase))
      return absl::InvalidArgumentError(
          absl::StrCat("--state ", state, ": there is no such state", spec::did_you_mean(upper, known)));
    request->add_phases(phase);
    if (terminal(phase)) request->set_all(true);
  }
  return absl::OkStatus();
}

}  // namespace

int ls_main(int argc, char** argv) {
  Arguments app("Lists jobs, the newest first: those that have not ended, unless --all.", argv[0]);
  Common common;
  std::string array, queue, user;
  std::vector<std::string> states;
  bool all = false;
  uint64_t limit = 100, before = 0;
  add_server(app, &common);
  add_output(app, &common);
  app.add_option("ARRAY", array, "only the elements of this array")->type_name("");
  app.add_flag("-a,--all", all, "also those that have ended");
  app.add_option("-q,--queue", queue, "only of this queue")->type_name("NAME");
  app.add_option("-u,--user", user, "only of this user")->type_name("NAME");
  app.add_option("-s,--state", states, "only in this state, again for each; e.g. RUNNING")
      ->type_name("STATE")
      ->allow_extra_args(false);
  app.add_option("-n,--limit", limit, "at most so many; default 100")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--before", before, "only ids below this one: the next page")->type_name("ID");
  if (auto code = parse(app, argc, argv)) return *code;

  Client client(common.server);
  v1::ListJobsRequest request;
  request.set_queue(queue);
  request.set_user(user);
  request.set_all(all);
  request.set_before(before);
  if (absl::Status bad = read_phases(states, &request); !bad.ok()) return fail(bad);
  if (!array.empty()) {
    const absl::StatusOr<v1::JobRef> ref = parse_job_ref(array);
    if (!ref.ok()) return fail(ref.status());
    if (ref->id() == 0) return usage_error(app, "an array is named by its number here");
    request.set_elements_of(ref->id());
    request.set_all(true);
  }
  v1::ListJobsReply all_jobs;
  while (static_cast<uint64_t>(all_jobs.jobs_size()) < limit) {
    v1::ListJobsReply page;
    request.set_limit(static_cast<uint32_t>(
        std::min<uint64_t>(kPageMax, limit - static_cast<uint64_t>(all_jobs.jobs_size()))));
    if (absl::Status bad = client.call(&v1::Muster::Stub::ListJobs, request, &page); !bad.ok())
      return fail(bad);
    for (v1::JobView& view : *page.mutable_jobs()) *all_jobs.add_jobs() = std::move(view);
    all_jobs.set_more(page.more());
    if (!page.more() || page.jobs().empty() || !array.empty()) break;
    request.set_before(all_jobs.jobs(all_jobs.jobs_size() - 1).state().id());
  }
  if (common.json) {
    for (const v1::JobView& view : all_jobs.jobs()) std::cout << line_of(job_json(view)) << "\n";
    return kDone;
  }
  print_table(all_jobs, wall_ms());
  if (all_jobs.more() && !all_jobs.jobs().empty())
    std::cerr << "there are more: --limit N, or --before "
              << all_jobs.jobs(all_jobs.jobs_size() - 1).state().id() << "\n";
  return kDone;
}

}  // namespace muster::tools
