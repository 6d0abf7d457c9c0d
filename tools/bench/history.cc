#include "tools/bench/history.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/v1/record.pb.h"
#include "proto/records.h"

namespace muster::bench {
namespace {

constexpr uint64_t kServer = 7;
constexpr int kJobsAtOnce = 1000;

std::string node_name(uint64_t job, int nodes) {
  return absl::StrCat("n", job % static_cast<uint64_t>(nodes));
}

uint64_t nonce_of(uint64_t job) {
  return job * 0x9e3779b97f4a7c15 | 1;
}

v1::JobSpec spec_of(uint64_t job, bool fits) {
  v1::JobSpec spec;
  spec.set_name(absl::StrCat("job-", job % 1000));
  spec.set_queue("default");
  spec.set_user("ana");
  spec.set_grace_ms(30'000);
  spec.set_signal("TERM");
  spec.set_success("all");
  spec.set_start_limit_ms(600'000);
  spec.mutable_retries()->set_own(0);
  spec.mutable_retries()->set_infrastructure(10);
  spec.mutable_retries()->set_start(5);
  v1::Task& task = *spec.add_tasks();
  task.set_name("main");
  task.set_replicas(1);
  task.mutable_resources()->set_cpu_milli(fits ? 1000 : 1'000'000);
  for (const char* word : {"python", "train.py", "--steps", "1000"}) task.add_command(word);
  task.add_command(absl::StrCat("--seed=", job));
  (*task.mutable_env())["LR"] = "0.1";
  (*task.mutable_env())["DATA"] = "/data/imagenet";
  return spec;
}

}  // namespace

History::History(HistoryOptions options)
    : options_(std::move(options)), report_sequence_(static_cast<size_t>(options_.nodes), 0) {}

void History::go_on_from(uint64_t job) {
  opened_ = true;
  next_job_ = job;
  sequence_ = uint64_t{1} << 40;  // after all that the first history wrote
}

namespace {

void add(const std::string& cell, v1::Record record, uint64_t sequence, int64_t* position,
         std::vector<storage::LogEntry>* out) {
  record.set_cell(cell);
  record.set_type(std::string(record_type(record)));
  record.set_format(kFormat);
  record.mutable_writer()->set_session(kServer);
  record.mutable_writer()->set_sequence(sequence);
  record.mutable_actor()->set_principal("ana");
  record.mutable_actor()->set_authenticated_by("local");
  record.set_wall_ms(1'796'000'000'000 + *position);
  storage::LogEntry entry{record_key(record), record.type(), kFormat, {}};
  record.SerializeToString(&entry.value);
  out->push_back(std::move(entry));
  ++*position;
}

}  // namespace

void History::open(std::vector<storage::LogEntry>* out) {
  v1::Record record;
  record.mutable_log_opened()->set_lease_ms(2000);
  add(options_.cell, record, ++sequence_, &position_, out);
  record.mutable_server_joined()->set_session(kServer);
  record.mutable_server_joined()->set_server("bench");
  record.mutable_server_joined()->add_formats(kFormat);
  add(options_.cell, record, ++sequence_, &position_, out);
  record.mutable_term_claimed()->set_term(1);
  record.mutable_term_claimed()->set_seen(1);
  add(options_.cell, record, ++sequence_, &position_, out);
  for (int node = 0; node < options_.nodes; ++node) {
    v1::SessionOpened& body = *record.mutable_session_opened();
    body.set_node(absl::StrCat("n", node));
    body.set_incarnation(1);
    body.set_session(1000 + static_cast<uint64_t>(node));
    body.set_server(kServer);
    body.mutable_description()->set_cpu_milli(64'000);
    body.mutable_description()->set_memory_bytes(int64_t{256} << 30);
    add(options_.cell, record, ++sequence_, &position_, out);
  }
}

void History::submit(bool fits, std::vector<storage::LogEntry>* out) {
  const uint64_t job = next_job_++;
  v1::Record record;
  record.mutable_submitted()->set_key(absl::StrCat("key-", nonce_of(job)));
  *record.mutable_submitted()->mutable_spec() = spec_of(job, fits);
  add(options_.cell, std::move(record), ++sequence_, &position_, out);
}

void History::run_jobs(uint64_t count, std::vector<storage::LogEntry>* out) {
  const uint64_t first = next_job_;
  std::vector<int64_t> fences;
  for (uint64_t i = 0; i < count; ++i) submit(true, out);
  for (uint64_t job = first; job < first + count; ++job) {
    v1::Record record;
    fences.push_back(position_);
    record.set_term(1);
    record.set_nonce(nonce_of(job));
    v1::Placed& body = *record.mutable_placed();
    body.set_job(job);
    body.set_attempt(1);
    body.set_revision(1);
    v1::Place& place = *body.add_places();
    place.set_node(node_name(job, options_.nodes));
    place.set_node_revision(1);
    place.set_node_session(1000 + job % static_cast<uint64_t>(options_.nodes));
    add(options_.cell, std::move(record), ++sequence_, &position_, out);
  }
  for (int step = 0; step < 3; ++step) {
    for (uint64_t job = first; job < first + count; ++job) {
      v1::Record record;
      v1::ReportHeader header;
      const uint64_t node = job % static_cast<uint64_t>(options_.nodes);
      header.set_node(node_name(job, options_.nodes));
      header.set_incarnation(1);
      header.set_session(1000 + node);
      header.set_sequence(++report_sequence_[node]);
      v1::MemberRef ref;
      ref.set_job(job);
      ref.set_attempt(1);
      ref.mutable_fence()->set_position(fences[job - first]);
      ref.mutable_fence()->set_nonce(nonce_of(job));
      if (step == 0) {
        *record.mutable_prepared()->mutable_report() = header;
        *record.mutable_prepared()->mutable_member() = ref;
        record.mutable_prepared()->set_address("10.0.0.1");
        record.mutable_prepared()->set_port(30000);
      } else if (step == 1) {
        *record.mutable_started()->mutable_report() = header;
        *record.mutable_started()->mutable_member() = ref;
        record.mutable_started()->set_run(1);
      } else {
        *record.mutable_exited()->mutable_report() = header;
        *record.mutable_exited()->mutable_member() = ref;
        record.mutable_exited()->set_run(1);
      }
      add(options_.cell, std::move(record), ++sequence_, &position_, out);
    }
  }
}

std::vector<storage::LogEntry> History::next(size_t records_max) {
  std::vector<storage::LogEntry> out;
  if (!std::exchange(opened_, true)) open(&out);
  while (out.size() < records_max && ended_ < options_.jobs_ended) {
    const uint64_t count = std::min<uint64_t>(kJobsAtOnce, options_.jobs_ended - ended_);
    run_jobs(count, &out);
    ended_ += count;
  }
  while (out.size() < records_max && live_ < options_.jobs_live) {
    submit(false, &out);
    ++live_;
  }
  return out;
}

}  // namespace muster::bench
