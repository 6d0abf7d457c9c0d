// What Members reports, and how often: an end that is told is marked so in its directory once the journal has
// it.
#include <spdlog/spdlog.h>

#include "agent/members.h"

namespace muster::agent {

void Members::report_prepared(v1::Prepared prepared) {
  v1::AgentMessage message;
  *message.mutable_prepared() = std::move(prepared);
  journal_->add(std::move(message), options_.node);
}

void Members::report_prepare_failed(const v1::MemberRef& ref, const std::string& text, bool own) {
  spdlog::warn("{}: cannot prepare: {}", member_key(ref), text);
  v1::AgentMessage message;
  v1::PrepareFailed& body = *message.mutable_prepare_failed();
  *body.mutable_member() = ref;
  body.set_message(text);
  body.set_own(own);
  journal_->add(std::move(message), options_.node);
}

void Members::report_started(const Member& member) {
  v1::AgentMessage message;
  *message.mutable_started()->mutable_member() = member.ref;
  message.mutable_started()->set_run(member.run);
  journal_->add(std::move(message), options_.node);
}

void Members::report_exited(v1::Exited exited) {
  v1::AgentMessage message;
  *message.mutable_exited() = std::move(exited);
  journal_->add(std::move(message), options_.node);
}

// For a member of which this node has nothing.
void Members::report_unknown(const v1::MemberRef& ref, const std::string& text) {
  if (journal_->has(ref, v1::AgentMessage::kExited)) return;
  v1::Exited exited;
  *exited.mutable_member() = ref;
  exited.set_never_started(true);
  exited.set_message(text);
  report_exited(std::move(exited));
}

void Members::tell_end(Member* member) {
  absl::StatusOr<TaskRecord> record = member->dir.read();
  v1::Exited exited;
  if (record.ok() && record->end) {
    exited = std::move(*record->end);
  } else {
    // Its end could not be written, or can't be read: what can be said is that nothing of it lives.
    spdlog::error("{}: {}", member->dir.name(), std::string(record.status().message()));
    *exited.mutable_member() = member->ref;
    exited.set_run(member->run);
    exited.set_supervisor_lost(true);
    exited.set_message("its end can't be read from the node's disk");
  }
  report_exited(std::move(exited));
  to_mark_told_.push_back(member->dir);
}

void Members::tell_end_again(Member* member) {
  if (!journal_->has(member->ref, v1::AgentMessage::kExited)) tell_end(member);
}

void Members::committed() {
  for (const TaskDir& dir : to_mark_told_) dir.add_told().IgnoreError();
  to_mark_told_.clear();
}

}  // namespace muster::agent
