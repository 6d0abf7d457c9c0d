// Lists of jobs, from the store: a list of millions must not stop the engine's thread.
#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "queue/server/lookup.h"
#include "queue/server/views.h"
#include "queue/validate.h"

namespace muster::server {
namespace {

using queue::GangKey;
using storage::Table;

constexpr uint32_t kLimitDefault = 100;
constexpr uint32_t kLimitMax = 1000;
constexpr uint32_t kLastElement = std::numeric_limits<uint32_t>::max();

// Newest first, and an array's elements from the last one.
struct NewestFirst {
  bool operator()(const GangKey& a, const GangKey& b) const { return b < a; }
};
using Jobs = std::map<GangKey, v1::JobState, NewestFirst>;

bool wanted(const v1::ListJobsRequest& request, const v1::JobState& job) {
  if (!request.queue().empty() && job.queue() != request.queue()) return false;
  if (!request.user().empty() && job.user() != request.user()) return false;
  const auto& phases = request.phases();
  return phases.empty() || std::find(phases.begin(), phases.end(), job.phase()) != phases.end();
}

std::string first_key(const v1::ListJobsRequest& request) {
  if (request.elements_of() != 0) {
    const uint64_t before = request.before() == 0 ? uint64_t{kLastElement} + 1 : request.before();
    return queue::store_key({request.elements_of(), static_cast<uint32_t>(before - 1)});
  }
  return request.before() == 0 ? "" : queue::store_key({request.before() - 1, kLastElement});
}

// Adds up to `most` jobs of one table.
absl::Status collect(const storage::StateStore& store, Table table, const v1::ListJobsRequest& request,
                     size_t most, Jobs* out) {
  size_t found = 0;
  absl::Status bad;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const GangKey gang = queue::gang_of_store_key(key);
    if (request.elements_of() != 0 && (gang.job != request.elements_of() || gang.element == 0)) return false;
    if (request.elements_of() == 0 && gang.element != 0) return true;
    v1::JobState job;
    if (!job.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
      bad = absl::DataLossError(absl::StrCat("job ", gang.job, " can't be read from the state store"));
      return false;
    }
    if (!wanted(request, job)) return true;
    (*out)[gang] = std::move(job);
    return ++found < most;
  };
  const absl::Status scanned = store.scan(table, first_key(request), true, visit);
  return scanned.ok() ? bad : scanned;
}

}  // namespace

absl::StatusOr<v1::ListJobsReply> Lookup::list(const v1::ListJobsRequest& request) {
  if (request.limit() > kLimitMax)
    return queue::field_error({nullptr, "limit"}, absl::StrCat(request.limit()),
                              absl::StrCat("must be at most ", kLimitMax));
  const size_t limit = request.limit() == 0 ? kLimitDefault : request.limit();
  if (!driver_.call([](Turn& turn) { return turn.commit(), true; })) return stopping_error();
  auto store = this->store();
  if (!store.ok()) return store.status();
  // Live ones first: a job that ends in between is found as ended then.
  Jobs jobs;
  absl::Status status = collect(**store, Table::kLive, request, limit + 1, &jobs);
  if (status.ok() && (request.all() || request.elements_of() != 0))
    status = collect(**store, Table::kEnded, request, limit + 1, &jobs);
  if (!status.ok()) return status;
  v1::ListJobsReply reply;
  for (auto& [key, job] : jobs) {
    if (static_cast<size_t>(reply.jobs_size()) == limit) {
      reply.set_more(true);
      break;
    }
    *reply.add_jobs()->mutable_state() = std::move(job);
  }
  const bool completed = driver_
                             .call([&](Turn& turn) {
                               for (v1::JobView& view : *reply.mutable_jobs())
                                 complete_view(turn.state(), turn.wall_ms, &view);
                               return true;
                             })
                             .has_value();
  if (!completed) return stopping_error();
  return reply;
}

}  // namespace muster::server
