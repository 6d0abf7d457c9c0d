#include "agent/members.h"

#include <signal.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "agent/files.h"
#include "agent/processes.h"

namespace muster::agent {

Members::Members(MembersOptions options, Poller* poller, SpawnerClient* spawner, ReportJournal* journal,
                 DoneFiles* done)
    : options_(std::move(options)),
      poller_(poller),
      spawner_(spawner),
      journal_(journal),
      done_(done),
      ports_(options_.port_first, options_.port_last) {}

Members::Key Members::key_of(const v1::MemberRef& ref) {
  return {ref.job(), ref.element(), ref.rank(), ref.fence().position()};
}

Members::Member* Members::find(const v1::MemberRef& ref) {
  const auto it = members_.find(key_of(ref));
  if (it == members_.end() || it->second->ref.fence().nonce() != ref.fence().nonce()) return nullptr;
  return it->second.get();
}

std::string Members::path_of(const v1::MemberRef& ref) const {
  return absl::StrCat(options_.dir, "/tasks/", member_key(ref));
}

// ---- prepare ----

void Members::prepare(const v1::PrepareOrder& order) {
  const v1::MemberRef& ref = order.member();
  if (Member* known = find(ref)) {
    if (known->phase == Phase::kPrepared && !journal_->has(ref, v1::AgentMessage::kPrepared)) {
      const absl::StatusOr<TaskRecord> record = known->dir.read();
      if (record.ok()) report_prepared(record->prepared);
    }
    if (known->phase == Phase::kEnded) tell_end_again(known);
    return;
  }
  const Key first{ref.job(), ref.element(), ref.rank(), INT64_MIN};
  const Key last{ref.job(), ref.element(), ref.rank(), INT64_MAX};
  bool older_lives = false;
  std::vector<Member*> older;
  for (auto it = members_.lower_bound(first); it != members_.end() && it->first <= last; ++it) {
    if (it->second->ref.fence().position() >= ref.fence().position())
      return report_prepare_failed(
          ref, absl::StrCat("fenced: this node knows the placement at ", it->second->ref.fence().position()),
          false);
    older.push_back(it->second.get());
  }
  for (Member* member : older) {
    if (member->phase == Phase::kWaiting) {
      members_.erase(key_of(member->ref));
      continue;
    }
    if (member->phase == Phase::kPrepared) end_prepared(member, "a newer attempt was placed");
    if (member->phase == Phase::kEnded) continue;
    older_lives = true;
    signal_stop(member, {0, SIGKILL});
  }
  if (members_.size() >= kMembersMax)
    return report_prepare_failed(ref, absl::StrCat("the agent has ", kMembersMax, " members, its most"),
                                 false);
  if (journal_->full())
    return report_prepare_failed(ref, "the agent has too many reports that no server has acknowledged",
                                 false);

  auto member = std::make_unique<Member>(path_of(ref));
  member->ref = ref;
  Member* added = member.get();
  members_[key_of(ref)] = std::move(member);
  if (older_lives) {
    added->phase = Phase::kWaiting;
    added->waiting = order;
  } else {
    prepare_now(order, added);
  }
}

void Members::prepare_now(const v1::PrepareOrder& order, Member* member) {
  // An attempt of the same number, from before the cell was begun anew.
  if (exists(member->dir.path())) {
    if (const absl::StatusOr<TaskRecord> before = member->dir.read(); before.ok())
      done_->keep(member->dir.path(), before->order.member());
  }
  bool own = false;
  absl::StatusOr<v1::Prepared> prepared = make_prepared(order, member, &own);
  if (!prepared.ok()) {
    report_prepare_failed(order.member(), std::string(prepared.status().message()), own);
    members_.erase(key_of(order.member()));
    return;
  }
  member->phase = Phase::kPrepared;
  report_prepared(*prepared);
}

absl::StatusOr<v1::Prepared> Members::make_prepared(const v1::PrepareOrder& order, Member* member,
                                                    bool* own) {
  if (!order.workdir().empty() && !std::filesystem::is_directory(order.workdir())) {
    *own = true;
    return absl::NotFoundError(
        absl::StrCat("workdir: ", order.workdir(), " is no directory on node ", options_.node));
  }
  if (order.task().command().empty() && order.task().script().empty()) {
    *own = true;
    return absl::InvalidArgumentError("the member has neither a command nor a script");
  }
  v1::Prepared prepared;
  *prepared.mutable_member() = order.member();
  prepared.set_address(options_.address);
  for (int i = -1; i < order.task().ports_size(); ++i) {
    absl::StatusOr<PortLease> lease = ports_.lease();
    if (!lease.ok()) return lease.status();
    if (i < 0) {
      prepared.set_port(lease->port);
    } else {
      v1::NamedPort& named = *prepared.add_ports();
      named.set_name(order.task().ports(i));
      named.set_port(lease->port);
    }
    member->leases.push_back(std::move(*lease));
  }
  if (absl::Status status = member->dir.create(order, prepared); !status.ok()) return status;
  return prepared;
}

void Members::wake_waiting(const v1::MemberRef& after) {
  const Key first{after.job(), after.element(), after.rank(), INT64_MIN};
  const Key last{after.job(), after.element(), after.rank(), INT64_MAX};
  Member* waiting = nullptr;
  for (auto it = members_.lower_bound(first); it != members_.end() && it->first <= last; ++it) {
    if (it->second->phase == Phase::kWaiting)
      waiting = it->second.get();
    else if (it->second->phase != Phase::kEnded)
      return;  // another older one still lives
  }
  if (waiting == nullptr) return;
  const v1::PrepareOrder order = std::move(waiting->waiting);
  prepare_now(order, waiting);
}

// ---- start ----

void Members::start(const v1::StartOrder& order) {
  Member* member = find(order.member());
  if (member == nullptr) return report_unknown(order.member(), "its files are not on this node");
  if (member->stop_asked || member->forgotten) return;
  switch (member->phase) {
    case Phase::kWaiting:
    case Phase::kClearing:
      return;
    case Phase::kStarting:
      return;
    case Phase::kRunning:
      if (order.run() == member->run && !journal_->has(order.member(), v1::AgentMessage::kStarted))
        report_started(*member);
      return;
    case Phase::kEnded:
      if (order.run() <= member->run || member->run == 0) return tell_end_again(member);
      break;
    case Phase::kPrepared:
      break;
  }
  if (order.run() == 0) return;
  member->run = order.run();
  if (absl::Status status = member->dir.add_start(order); !status.ok())
    return never_started(member, std::string(status.message()));
  spawn(member);
}

// ---- stop and forget ----

void Members::stop(const v1::StopOrder& order) {
  Member* member = find(order.member());
  if (member == nullptr) return report_unknown(order.member(), "");
  switch (member->phase) {
    case Phase::kWaiting:
      members_.erase(key_of(order.member()));
      return report_unknown(order.member(), "");
    case Phase::kPrepared:
      return end_prepared(member, "");
    case Phase::kEnded:
      return tell_end_again(member);
    case Phase::kClearing:
      return;
    case Phase::kStarting:
    case Phase::kRunning:
      break;
  }
  const int signal = signal_number(order.signal());
  signal_stop(member, {order.grace_ms(), signal != 0 ? signal : SIGTERM});
}

void Members::forget(const v1::ForgetOrder& order) {
  Member* member = find(order.member());
  if (member == nullptr) return;
  member->forgotten = true;
  switch (member->phase) {
    case Phase::kWaiting:
      members_.erase(key_of(order.member()));
      return;
    case Phase::kPrepared:
      return end_prepared(member, "");
    case Phase::kEnded:
      return retire(member);
    case Phase::kClearing:
      return;
    case Phase::kStarting:
    case Phase::kRunning:
      if (!member->stop_asked) signal_stop(member, {10'000, SIGTERM});
      return;
  }
}

// A member that has not been started ends without ever having run.
void Members::end_prepared(Member* member, const std::string& message) {
  absl::StatusOr<Fd> lock = member->dir.lock();
  if (lock.ok() && !lock->valid()) {
    // An earlier agent had asked for its start, and that supervisor lives.
    member->phase = Phase::kStarting;
    member->run = 1;
    adopt_supervisor(member);
    return signal_stop(member, {0, SIGKILL});
  }
  never_started(member, message);
}

void Members::retire(Member* member) {
  unwatch(member);
  done_->keep(member->dir.path(), member->ref);
  members_.erase(key_of(member->ref));
}

// ---- reading ----

std::vector<v1::MemberRef> Members::present() const {
  std::vector<v1::MemberRef> out;
  for (const auto& [key, member] : members_) {
    if (member->phase != Phase::kWaiting) out.push_back(member->ref);
  }
  return out;
}

std::string Members::files_of(const v1::MemberRef& ref, bool* live) const {
  const auto it = members_.find(key_of(ref));
  *live = false;
  if (it == members_.end() || it->second->ref.fence().nonce() != ref.fence().nonce()) return done_->find(ref);
  *live = it->second->phase != Phase::kEnded;
  return it->second->dir.path();
}

}  // namespace muster::agent
