// The keys of a job as a whole.
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/spec/job_file.h"
#include "tools/spec/readers.h"

namespace muster::spec {
namespace {

constexpr int64_t kCountMax = 1'000'000;

absl::Status read_name(const Value& value, v1::JobSpec* job, v1::Task*) {
  return value.text(job->mutable_name());
}
absl::Status read_queue(const Value& value, v1::JobSpec* job, v1::Task*) {
  return value.text(job->mutable_queue());
}
absl::Status read_user(const Value& value, v1::JobSpec* job, v1::Task*) {
  return value.text(job->mutable_user());
}
absl::Status read_signal(const Value& value, v1::JobSpec* job, v1::Task*) {
  if (absl::Status bad = value.text(job->mutable_signal()); !bad.ok()) return bad;
  if (job->signal().starts_with("SIG")) job->set_signal(job->signal().substr(3));
  return absl::OkStatus();
}
absl::Status read_success(const Value& value, v1::JobSpec* job, v1::Task*) {
  return value.text(job->mutable_success());
}

absl::Status read_workdir(const Value& value, v1::JobSpec* job, v1::Task*) {
  if (absl::Status bad = value.text(job->mutable_workdir()); !bad.ok()) return bad;
  const std::string& path = job->workdir();
  if (path.starts_with("/")) return absl::OkStatus();
  const std::string& directory = value.source().directory;
  const std::string absolute = path == "." || path.empty() ? directory : absl::StrCat(directory, "/", path);
  return value.error(
      absl::StrCat("'workdir: ", path,
                   "' (a snapshot that travels with the job) is planned and not served yet by this "
                   "release; give an absolute path that every node has, as in ",
                   absolute));
}

absl::Status read_priority(const Value& value, v1::JobSpec* job, v1::Task*) {
  int64_t number = 0;
  if (absl::Status bad = value.integer(-kCountMax, kCountMax, &number); !bad.ok()) return bad;
  job->set_priority(static_cast<int32_t>(number));
  return absl::OkStatus();
}

absl::Status read_preemptible(const Value& value, v1::JobSpec* job, v1::Task*) {
  bool on = false;
  if (absl::Status bad = value.boolean(&on); !bad.ok()) return bad;
  job->set_preemptible(on);
  return absl::OkStatus();
}
absl::Status read_hold(const Value& value, v1::JobSpec* job, v1::Task*) {
  bool on = false;
  if (absl::Status bad = value.boolean(&on); !bad.ok()) return bad;
  job->set_hold(on);
  return absl::OkStatus();
}

absl::Status read_time_limit(const Value& value, v1::JobSpec* job, v1::Task*) {
  int64_t ms = 0;
  if (absl::Status bad = value.duration_ms(&ms); !bad.ok()) return bad;
  job->set_time_limit_ms(ms);
  return absl::OkStatus();
}
absl::Status read_expected(const Value& value, v1::JobSpec* job, v1::Task*) {
  int64_t ms = 0;
  if (absl::Status bad = value.duration_ms(&ms); !bad.ok()) return bad;
  job->set_expected_ms(ms);
  return absl::OkStatus();
}
absl::Status read_grace(const Value& value, v1::JobSpec* job, v1::Task*) {
  int64_t ms = 0;
  if (absl::Status bad = value.duration_ms(&ms); !bad.ok()) return bad;
  job->set_grace_ms(ms);
  return absl::OkStatus();
}
absl::Status read_start_limit(const Value& value, v1::JobSpec* job, v1::Task*) {
  int64_t ms = 0;
  if (absl::Status bad = value.duration_ms(&ms); !bad.ok()) return bad;
  job->set_start_limit_ms(ms);
  return absl::OkStatus();
}

absl::Status read_pack(const Value& value, v1::JobSpec* job, v1::Task*) {
  constexpr std::string_view kSoft = "prefer:";
  v1::Pack* pack = job->mutable_pack();
  pack->Clear();
  if (value.is_map()) {
    return value.each("as in {prefer: rack}", [&](const Value& entry) {
      if (entry.key() != "prefer") return entry.unknown_key({"prefer"});
      pack->set_soft(true);
      return entry.text(pack->mutable_label());
    });
  }
  std::string label;
  if (absl::Status bad = value.text(&label); !bad.ok()) return bad;
  if (label.starts_with(kSoft)) {
    label.erase(0, std::min(label.size(), label.find_first_not_of(' ', kSoft.size())));
    pack->set_soft(true);
  }
  if (label.empty()) return value.error("'pack' must be a node label, as in rack, or \"prefer: rack\"");
  pack->set_label(label);
  return absl::OkStatus();
}

absl::Status read_retries(const Value& value, v1::JobSpec* job, v1::Task*) {
  v1::Retries* out = job->mutable_retries();
  out->Clear();
  int64_t number = 0;
  if (value.is_scalar()) {
    if (absl::Status bad = value.integer(0, kCountMax, &number); !bad.ok()) return bad;
    out->set_own(static_cast<uint32_t>(number));
    return absl::OkStatus();
  }
  return value.each("as in {own: 3, infrastructure: 10}", [&](const Value& entry) {
    if (entry.key() != "own" && entry.key() != "infrastructure" && entry.key() != "start")
      return entry.unknown_key({"own", "infrastructure", "start"});
    if (absl::Status bad = entry.integer(0, kCountMax, &number); !bad.ok()) return bad;
    const auto retries = static_cast<uint32_t>(number);
    if (entry.key() == "own") out->set_own(retries);
    if (entry.key() == "infrastructure") out->set_infrastructure(retries);
    if (entry.key() == "start") out->set_start(retries);
    return absl::OkStatus();
  });
}

absl::Status read_after(const Value& value, v1::JobSpec* job, v1::Task*) {
  job->mutable_after()->Clear();
  return value.each("as in {ok: [12, prep]}", [&](const Value& entry) {
    if (entry.key() != "ok" && entry.key() != "any") return entry.unknown_key({"ok", "any"});
    std::vector<std::string> jobs;
    if (absl::Status bad = entry.texts(&jobs); !bad.ok()) return bad;
    auto* out =
        entry.key() == "ok" ? job->mutable_after()->mutable_ok() : job->mutable_after()->mutable_any();
    out->Assign(jobs.begin(), jobs.end());
    return absl::OkStatus();
  });
}

// "0..9" → 0 to 9; false: it is no range.
bool range(std::string_view text, int64_t* first, int64_t* last) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return false;
  return absl::SimpleAtoi(absl::string_view(text.data(), dots), first) &&
         absl::SimpleAtoi(absl::string_view(text.data() + dots + 2, text.size() - dots - 2), last);
}

absl::Status read_sweep(const Value& value, v1::JobSpec* job, v1::Task*) {
  auto* out = job->mutable_array()->mutable_sweep();
  out->Clear();
  return value.each("as in {lr: [0.1, 0.01], seed: 0..9}", [&](const Value& entry) {
    std::vector<std::string> values;
    if (absl::Status bad = entry.texts(&values); !bad.ok()) return bad;
    int64_t first = 0, last = 0;
    if (!entry.is_list() && range(values[0], &first, &last)) {
      const auto distance = static_cast<uint64_t>(last) - static_cast<uint64_t>(first);
      if (last < first || distance >= kSweepValuesMax)
        return entry.error(
            absl::StrCat("'", values[0], "' must run upwards over at most ", kSweepValuesMax, " values"));
      values.clear();
      for (uint64_t i = 0; i <= distance; ++i)
        values.push_back(absl::StrCat(first + static_cast<int64_t>(i)));
    }
    if (values.empty() || values.size() > kSweepValuesMax)
      return entry.error(absl::StrCat("'", entry.key(), "' must have 1 to ", kSweepValuesMax, " values"));
    v1::SweepValues* sweep = out->Add();
    sweep->set_parameter(entry.key());
    sweep->mutable_values()->Assign(values.begin(), values.end());
    return absl::OkStatus();
  });
}

absl::Status read_array(const Value& value, v1::JobSpec* job, v1::Task* task) {
  v1::Array* out = job->mutable_array();
  int64_t number = 0;
  if (value.is_scalar()) {
    if (absl::Status bad = value.integer(1, kCountMax, &number); !bad.ok()) return bad;
    out->set_count(static_cast<uint32_t>(number));
    return absl::OkStatus();
  }
  return value.each("as in {count: 100, running: 10}", [&](const Value& entry) {
    if (entry.key() == "sweep") return read_sweep(entry, job, task);
    if (entry.key() != "count" && entry.key() != "running")
      return entry.unknown_key({"count", "running", "sweep"});
    if (absl::Status bad = entry.integer(1, kCountMax, &number); !bad.ok()) return bad;
    if (entry.key() == "count") out->set_count(static_cast<uint32_t>(number));
    if (entry.key() == "running") out->set_running(static_cast<uint32_t>(number));
    return absl::OkStatus();
  });
}

absl::Status read_on_disconnect(const Value& value, v1::JobSpec* job, v1::Task*) {
  job->clear_on_disconnect();
  if (value.is_map()) {
    return value.each("as in {stop_after: 10m}", [&](const Value& entry) {
      if (entry.key() != "stop_after") return entry.unknown_key({"stop_after"});
      int64_t ms = 0;
      if (absl::Status bad = entry.duration_ms(&ms); !bad.ok()) return bad;
      if (ms == 0) return entry.error("'stop_after' must be more than 0");
      job->mutable_on_disconnect()->set_stop_after_ms(ms);
      return absl::OkStatus();
    });
  }
  std::string word;
  if (absl::Status bad = value.text(&word); !bad.ok()) return bad;
  if (word != "keep") return value.error("'on_disconnect' must be keep, or {stop_after: 10m}");
  return absl::OkStatus();
}

absl::Status read_labels(const Value& value, v1::JobSpec* job, v1::Task*) {
  job->clear_labels();
  return value.each("as in {paper: iclr}",
                    [&](const Value& entry) { return entry.text(&(*job->mutable_labels())[entry.key()]); });
}

absl::Status read_planned(const Value& value, v1::JobSpec*, v1::Task*) {
  return value.planned(value.key());
}

}  // namespace

const std::vector<Key>& job_keys() {
  static const std::vector<Key> kKeys = {
      {"name", kJob, read_name},
      {"queue", kJob, read_queue},
      {"user", kJob, read_user},
      {"priority", kJob, read_priority},
      {"preemptible", kJob, read_preemptible},
      {"pack", kJob, read_pack},
      {"workdir", kJob, read_workdir},
      {"time_limit", kJob, read_time_limit},
      {"expected", kJob, read_expected},
      {"grace", kJob, read_grace},
      {"signal", kJob, read_signal},
      {"retries", kJob, read_retries},
      {"success", kJob, read_success},
      {"after", kJob, read_after},
      {"array", kJob, read_array},
      {"sweep", kJob, read_sweep},
      {"start_limit", kJob, read_start_limit},
      {"on_disconnect", kJob, read_on_disconnect},
      {"labels", kJob, read_labels},
      {"hold", kJob, read_hold},
      {"secrets", kJob, read_planned},
      {"mounts", kJob, read_planned},
      {"checkpoint", kJob, read_planned},
      {"resize_every", kJob, read_planned},
      {"notify", kJob, read_planned},
  };
  return kKeys;
}

}  // namespace muster::spec
