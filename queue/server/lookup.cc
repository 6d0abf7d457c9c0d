#include "queue/server/lookup.h"

#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/records.h"
#include "queue/server/views.h"
#include "queue/validate.h"

namespace muster::server {
namespace {

using queue::GangKey;
using queue::Job;
using storage::Table;

const Job* find_job(const queue::State& state, const GangKey& key) {
  const Job* live = state.find(key);
  return live != nullptr ? live : state.recently_ended(key);
}

// An array's element that has not become an entity, shown as if it had.
std::optional<v1::JobState> waiting_element(const queue::State& state, const GangKey& key) {
  const Job* array = key.element == 0 ? nullptr : state.find({key.job, 0});
  if (array == nullptr || !array->is_array()) return std::nullopt;
  for (const v1::IndexRange& range : array->state.array().pending()) {
    if (key.element - 1 < range.first() || key.element - 1 > range.last()) continue;
    v1::JobState out = array->state;
    out.clear_array();
    out.set_phase(v1::PENDING);
    out.set_element(key.element);
    return out;
  }
  return std::nullopt;
}

absl::Status no_job(uint64_t id, uint32_t element) {
  return absl::NotFoundError(absl::StrCat("no job ", job_name(id, element)));
}

}  // namespace

absl::Status stopping_error() {
  return absl::UnavailableError("the server is starting or stopping; ask again");
}

int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

absl::StatusOr<std::shared_ptr<storage::StateStore>> Lookup::store() {
  if (auto store = driver_.store()) return store;
  return absl::UnavailableError("the state is being folded anew; ask again");
}

absl::StatusOr<uint64_t> Lookup::resolve(const v1::JobRef& ref) {
  if (ref.id() != 0) return ref.id();
  if (ref.name().empty()) return queue::field_error({nullptr, "job"}, "empty", "must be a job's id or name");
  return newest_named(ref.name());
}

// Names are kept apart by user, so this skips from user to user.
absl::StatusOr<uint64_t> Lookup::newest_named(const std::string& name) {
  if (!driver_.call([](Turn& turn) { return turn.commit(), true; })) return stopping_error();
  auto store = this->store();
  if (!store.ok()) return store.status();
  uint64_t newest = 0;
  std::string from;
  while (true) {
    std::optional<std::string> user;
    absl::Status scanned =
        (*store)->scan(Table::kNames, from, false, [&](std::string_view key, std::string_view) {
          user = std::string(key.substr(0, key.find('\0')));
          return false;
        });
    if (!scanned.ok()) return scanned;
    if (!user) break;
    auto found = (*store)->get(Table::kNames, queue::owned(*user, name));
    if (!found.ok()) return found.status();
    v1::NameState state;
    if (found->has_value() && state.ParseFromString(**found)) newest = std::max(newest, state.job());
    from = *user + '\1';
  }
  if (newest == 0) return absl::NotFoundError(absl::StrCat("no job named ", queue::quoted(name)));
  return newest;
}

absl::StatusOr<v1::JobView> Lookup::ended_view(uint64_t id, uint32_t element) {
  auto store = this->store();
  if (!store.ok()) return store.status();
  auto bytes = (*store)->get(Table::kEnded, queue::store_key({id, element}));
  if (!bytes.ok()) return bytes.status();
  v1::JobView view;
  if (!bytes->has_value()) return no_job(id, element);
  if (!view.mutable_state()->ParseFromString(**bytes))
    return absl::DataLossError(
        absl::StrCat("job ", job_name(id, element), " can't be read from the state store"));
  return view;
}

absl::StatusOr<v1::JobView> Lookup::view(const v1::JobRef& ref, bool spec) {
  auto id = resolve(ref);
  if (!id.ok()) return id.status();
  const GangKey key{*id, ref.element()};
  v1::JobView view;
  // 0: ended, or there is none.
  const auto live = driver_.call([&](Turn& turn) {
    const Job* job = find_job(turn.state(), key);
    if (job != nullptr) {
      *view.mutable_state() = job->state;
    } else if (auto waiting = waiting_element(turn.state(), key)) {
      *view.mutable_state() = *std::move(waiting);
    } else {
      return false;
    }
    complete_view(turn.state(), turn.wall_ms, &view);
    return true;
  });
  if (!live) return stopping_error();
  if (!*live) {
    auto ended = ended_view(key.job, key.element);
    if (!ended.ok()) return ended.status();
    view = *std::move(ended);
    if (!driver_.call([&](Turn& turn) { return complete_view(turn.state(), turn.wall_ms, &view), true; }))
      return stopping_error();
  }
  if (spec) {
    auto found = this->spec(key.job);
    if (!found.ok()) return found.status();
    *view.mutable_spec() = *std::move(found);
  }
  return view;
}

absl::StatusOr<v1::JobSpec> Lookup::spec(uint64_t job) {
  std::shared_ptr<const queue::SpecInfo> info;
  const bool asked = driver_
                         .call([&](Turn& turn) {
                           if (const Job* live = find_job(turn.state(), {job, 0})) info = live->info;
                           return true;
                         })
                         .has_value();
  if (!asked) return stopping_error();
  if (info) return info->parse();
  auto store = this->store();
  if (!store.ok()) return store.status();
  auto bytes = (*store)->get(Table::kSpecs, queue::store_key({job, 0}));
  if (!bytes.ok()) return bytes.status();
  v1::JobSpec out;
  if (!bytes->has_value()) return no_job(job, 0);
  if (!out.ParseFromString(**bytes))
    return absl::DataLossError(absl::StrCat("the spec of job ", job, " can't be read from the state store"));
  return out;
}

absl::StatusOr<v1::ExplainReply> Lookup::explain(const v1::JobRef& ref) {
  auto view = this->view(ref, false);
  if (!view.ok()) return view.status();
  const GangKey key{view->state().id(), view->state().element()};
  v1::ExplainReply reply;
  const auto asked = driver_.call([&](Turn& turn) {
    const Job* job = turn.state().find(key);
    if (job == nullptr && view->state().phase() == v1::PENDING) job = turn.state().find({key.job, 0});
    if (job == nullptr) return false;
    reply = explain_job(turn.engine, *job);
    return true;
  });
  if (!asked) return stopping_error();
  if (!*asked) reply.set_summary(absl::StrCat("it has ended: ", v1::Phase_Name(view->state().phase())));
  *reply.mutable_job() = *std::move(view);
  return reply;
}

}  // namespace muster::server
