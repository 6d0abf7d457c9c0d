#include "tools/cli/follow.h"

#include <algorithm>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "tools/cli/job_view.h"
#include "tools/cli/json.h"

namespace muster::tools {
namespace {

constexpr int64_t kPollFirstMs = 20, kPollMostMs = 500;
constexpr int64_t kNeverForMs = 3000;  // so long the server must keep saying that a job can never run
constexpr size_t kLineBytesMax = 1 << 20;

absl::Status never(Client& client, const v1::JobRef& job, const v1::JobView& view) {
  v1::ExplainRequest request;
  *request.mutable_job() = job;
  v1::ExplainReply reply;
  std::string why = view.pending_reason();
  if (client.call(&v1::Muster::Stub::Explain, request, &reply).ok() && reply.never()) why = reply.summary();
  return absl::FailedPreconditionError(
      absl::StrCat("job ", view.state().id(), ": ", why, "; `muster why ", view.state().id(), "` says more"));
}

// Grows from 20 to 500 ms; never past the deadline.
void pause(int64_t* poll_ms, int64_t deadline_ms) {
  const int64_t left = deadline_ms < 0 ? *poll_ms : std::max<int64_t>(0, deadline_ms - monotonic_ms());
  sleep_ms(std::min(*poll_ms, left));
  *poll_ms = std::min(*poll_ms * 3 / 2, kPollMostMs);
}

}  // namespace

absl::StatusOr<v1::JobView> get_job(Client& client, const v1::JobRef& job, bool spec) {
  v1::GetJobRequest request;
  *request.mutable_job() = job;
  request.set_spec(spec);
  v1::JobView view;
  if (absl::Status bad = client.call(&v1::Muster::Stub::GetJob, request, &view); !bad.ok()) return bad;
  return view;
}

absl::StatusOr<v1::JobView> wait_for_job(Client& client, const v1::JobRef& job, const WaitOptions& options) {
  const int64_t deadline_ms = options.timeout_ms < 0 ? -1 : monotonic_ms() + options.timeout_ms;
  int64_t poll_ms = kPollFirstMs, never_since_ms = -1;
  Patience patience(options.patience_ms);
  v1::JobRef ref = job;
  while (true) {
    absl::StatusOr<v1::JobView> view = get_job(client, ref, false);
    if (!view.ok()) {
      if (!worth_retrying(view.status()) || !patience.wait(view.status())) return view;
      if (deadline_ms >= 0 && monotonic_ms() >= deadline_ms) return view;
      continue;
    }
    patience.succeeded();
    if (terminal(view->state().phase())) return view;
    ref.set_id(view->state().id());  // a name may come to mean a newer job
    ref.clear_name();
    if (!view->never()) never_since_ms = -1;
    if (view->never() && never_since_ms < 0) never_since_ms = monotonic_ms();
    if (view->never() && !options.for_capacity && monotonic_ms() - never_since_ms >= kNeverForMs)
      return never(client, ref, *view);
    if (deadline_ms >= 0 && monotonic_ms() >= deadline_ms) return view;
    pause(&poll_ms, deadline_ms);
  }
}

void LogPrinter::print_line(uint32_t rank, const std::string& line) {
  out_ << "[" << rank << "] " << line << "\n";
}

void LogPrinter::add(const v1::LogChunk& chunk) {
  std::string data = chunk.data();
  int64_t& printed = printed_[chunk.rank()];
  const int64_t known = std::clamp<int64_t>(printed - chunk.offset(), 0, static_cast<int64_t>(data.size()));
  data.erase(0, static_cast<size_t>(known));
  printed = std::max(printed, chunk.offset() + static_cast<int64_t>(chunk.data().size()));
  if (data.empty()) return;
  if (json_) {
    Json out = json_object();
    out["rank"] = chunk.rank();
    out["task"] = chunk.task();
    out["offset"] = chunk.offset() + known;
    out["data"] = data;
    out_ << line_of(out) << std::endl;
    return;
  }
  if (!prefix_) {
    out_ << data << std::flush;
    return;
  }
  std::string& line = unended_[chunk.rank()];
  line += data;
  size_t begin = 0;
  for (size_t end; (end = line.find('\n', begin)) != std::string::npos; begin = end + 1) {
    print_line(chunk.rank(), line.substr(begin, end - begin));
  }
  line.erase(0, begin);
  if (line.size() > kLineBytesMax) print_line(chunk.rank(), std::exchange(line, ""));
  out_ << std::flush;
}

void LogPrinter::finish() {
  for (const auto& [rank, line] : unended_) {
    if (!line.empty()) print_line(rank, line);
  }
  out_ << std::flush;
  unended_.clear();
  printed_.clear();
}

absl::Status print_logs(Client& client, const v1::LogsRequest& request, int64_t patience_ms,
                        LogPrinter* printer) {
  Patience patience(patience_ms);
  std::map<uint32_t, std::string> notes;
  while (true) {
    grpc::ClientContext context;
    Client::prepare(&context, 0);
    const auto stream = client.stub().Logs(&context, request);
    v1::LogChunk chunk;
    while (stream->Read(&chunk)) {
      patience.succeeded();
      if (!chunk.note().empty() && std::exchange(notes[chunk.rank()], chunk.note()) != chunk.note()) {
        std::fprintf(stderr, "muster: rank %u: %s\n", chunk.rank(), chunk.note().c_str());
      }
      printer->add(chunk);
    }
    const absl::Status status = client.explained(stream->Finish());
    if (status.ok() || !request.follow() || !worth_retrying(status) || !patience.wait(status)) return status;
  }
}

absl::StatusOr<v1::JobView> follow_job(Client& client, const v1::JobRef& job, const v1::LogsRequest& request,
                                       const WaitOptions& options, LogPrinter* printer) {
  int64_t poll_ms = kPollFirstMs, never_since_ms = -1;
  uint32_t followed = 0;
  Patience patience(options.patience_ms);
  while (true) {
    absl::StatusOr<v1::JobView> view = get_job(client, job, false);
    if (!view.ok()) {
      if (!worth_retrying(view.status()) || !patience.wait(view.status())) return view;
      continue;
    }
    patience.succeeded();
    const v1::JobState& state = view->state();
    if (state.has_attempt() && state.attempt().number() > followed) {
      followed = state.attempt().number();
      v1::LogsRequest logs = request;
      *logs.mutable_job() = job;
      logs.set_attempt(followed);
      logs.set_follow(true);
      const absl::Status status = print_logs(client, logs, options.patience_ms, printer);
      printer->finish();
      if (!status.ok()) std::fprintf(stderr, "muster: %s\n", std::string(status.message()).c_str());
      poll_ms = kPollFirstMs;
      continue;
    }
    if (terminal(state.phase())) return view;
    if (!view->never()) never_since_ms = -1;
    if (view->never() && never_since_ms < 0) never_since_ms = monotonic_ms();
    if (view->never() && !options.for_capacity && monotonic_ms() - never_since_ms >= kNeverForMs)
      return never(client, job, *view);
    pause(&poll_ms, -1);
  }
}

absl::Status watch(Client& client, v1::WatchRequest request, int64_t patience_ms,
                   const std::function<absl::Status(const v1::Event&)>& each) {
  Patience patience(patience_ms);
  while (true) {
    grpc::ClientContext context;
    Client::prepare(&context, 0);
    const auto stream = client.stub().Watch(&context, request);
    v1::Event event;
    while (stream->Read(&event)) {
      patience.succeeded();
      request.set_from(event.position() + 1);
      absl::Status stop = each(event);
      if (stop.ok()) continue;
      context.TryCancel();
      (void)stream->Finish();
      return stop;
    }
    const absl::Status status = client.explained(stream->Finish());
    if (status.ok() || !worth_retrying(status) || !patience.wait(status)) return status;
  }
}

}  // namespace muster::tools
