#include "tools/cli/record_text.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/records.h"
#include "tools/spec/quantity.h"

namespace muster::tools {
namespace {

constexpr size_t kNodesShown = 8;

std::string job_of(uint64_t job, uint32_t element) {
  return absl::StrCat("job ", job_name(job, element));
}

std::string member_of(const v1::MemberRef& member) {
  return absl::StrCat(job_of(member.job(), member.element()), " rank ", member.rank(), " of attempt ",
                      member.attempt());
}

// "a1 ×2, a2", in the order of ranks.
std::string nodes_of(const v1::Placed& placed) {
  std::vector<std::string> order;
  std::map<std::string, int> count;
  for (const v1::Place& place : placed.places()) {
    if (count[place.node()]++ == 0) order.push_back(place.node());
  }
  std::vector<std::string> out;
  for (const std::string& node : order) {
    if (out.size() == kNodesShown) {
      out.push_back(absl::StrCat("and ", order.size() - kNodesShown, " more nodes"));
      break;
    }
    out.push_back(count[node] == 1 ? node : absl::StrCat(node, " ×", count[node]));
  }
  return absl::StrJoin(out, ", ");
}

std::string submitted_words(const v1::Submitted& body) {
  const v1::JobSpec& spec = body.spec();
  uint64_t members = 0;
  for (const v1::Task& task : spec.tasks()) members += task.replicas();
  std::string out = absl::StrCat("submitted '", spec.name(), "' by ", spec.user(), " to queue ", spec.queue(),
                                 ": ", members, members == 1 ? " member" : " members");
  if (spec.has_array()) absl::StrAppend(&out, ", an array of ", spec.array().count());
  if (body.retry_of() > 0) absl::StrAppend(&out, ", a retry of ", body.retry_of());
  return out;
}

std::string exited_words(const v1::Exited& body) {
  std::string out = member_of(body.member());
  if (body.never_started()) return out + " was stopped before it ran";
  if (body.supervisor_lost()) return out + " was lost with its supervisor";
  if (body.out_of_memory()) return out + " was killed: out of memory";
  if (body.signal() != 0) return absl::StrCat(out, " was ended by signal ", body.signal());
  return absl::StrCat(out, " exited ", body.code());
}

std::string updated_words(const v1::Updated& body) {
  std::vector<std::string> set;
  if (body.has_priority()) set.push_back(absl::StrCat("priority=", body.priority()));
  if (body.has_time_limit_ms()) set.push_back("time_limit=" + spec::print_duration(body.time_limit_ms()));
  if (body.has_expected_ms()) set.push_back("expected=" + spec::print_duration(body.expected_ms()));
  if (body.has_queue()) set.push_back("queue=" + body.queue());
  if (body.has_array_running()) set.push_back(absl::StrCat("array.running=", body.array_running()));
  return absl::StrCat("updated job ", body.job(), ": ", absl::StrJoin(set, ", "));
}

std::string session_words(const v1::SessionOpened& body) {
  const v1::NodeDescription& node = body.description();
  std::string out = absl::StrCat("node ", body.node(), " connected: cpu ", spec::print_cpu(node.cpu_milli()),
                                 ", memory ", spec::short_bytes(node.memory_bytes()));
  if (node.devices_size() > 0)
    absl::StrAppend(&out, ", ", node.devices_size(), " × ", node.devices(0).model());
  return out;
}

std::string node_set_words(const v1::NodeSet& body) {
  const char* what = body.action() == v1::NodeSet::DRAIN     ? "drained node "
                     : body.action() == v1::NodeSet::UNDRAIN ? "undrained node "
                                                             : "quarantined node ";
  return absl::StrCat(what, body.node(), body.reason().empty() ? "" : ": ", body.reason());
}

std::string cell_words(const v1::Record& record) {
  switch (record.body_case()) {
    case v1::Record::kLogOpened:
      return absl::StrCat("log of cell '", record.cell(), "' opened at position ",
                          record.log_opened().base());
    case v1::Record::kServerJoined:
      return absl::StrCat("server ", record.server_joined().server(), " joined at ",
                          record.server_joined().address());
    case v1::Record::kServerBeat:
      return absl::StrCat("a server is alive; has folded tick ", record.server_beat().tick_position());
    case v1::Record::kTermClaimed:
      return absl::StrCat("claimed term ", record.term_claimed().term(), ", having seen position ",
                          record.term_claimed().seen());
    case v1::Record::kTick:
      return absl::StrCat("tick after ", record.tick().tick_position());
    case v1::Record::kFormatActivated:
      return absl::StrCat("format ", record.format_activated().format(), " activated");
    case v1::Record::kDigestRecorded:
      return absl::StrCat("digest recorded at position ", record.digest_recorded().position());
    case v1::Record::kPolicySet:
      return absl::StrCat("policy ", record.policy_set().key(), " set to ", record.policy_set().value());
    case v1::Record::kQueueSet:
      return absl::StrCat("queue ", record.queue_set().queue().name(), " set");
    case v1::Record::kQueueRemoved:
      return absl::StrCat("queue ", record.queue_removed().name(), " removed");
    default:
      return "";
  }
}

std::string job_words(const v1::Record& record) {
  switch (record.body_case()) {
    case v1::Record::kSubmitted:
      return submitted_words(record.submitted());
    case v1::Record::kCancelRequested:
      return "cancel " + job_of(record.cancel_requested().job(), record.cancel_requested().element());
    case v1::Record::kHoldRequested:
      return "hold " + job_of(record.hold_requested().job(), record.hold_requested().element());
    case v1::Record::kReleaseRequested:
      return "release " + job_of(record.release_requested().job(), record.release_requested().element());
    case v1::Record::kRequeueRequested:
      return "requeue " + job_of(record.requeue_requested().job(), record.requeue_requested().element());
    case v1::Record::kUpdated:
      return updated_words(record.updated());
    case v1::Record::kPlaced:
      return absl::StrCat("placed ", job_of(record.placed().job(), record.placed().element()), " attempt ",
                          record.placed().attempt(), " on ", nodes_of(record.placed()));
    case v1::Record::kGangStopped:
      return absl::StrCat("stopped ", job_of(record.gang_stopped().job(), record.gang_stopped().element()),
                          " attempt ", record.gang_stopped().attempt(), ": ",
                          v1::Reason_Name(record.gang_stopped().reason()));
    case v1::Record::kMemberRestarted:
      return absl::StrCat(
          "restarted ", job_of(record.member_restarted().job(), record.member_restarted().element()),
          " rank ", record.member_restarted().rank(), ", run ", record.member_restarted().run());
    default:
      return "";
  }
}

std::string node_words(const v1::Record& record) {
  switch (record.body_case()) {
    case v1::Record::kSessionOpened:
      return session_words(record.session_opened());
    case v1::Record::kNodeUnreachable:
      return absl::StrCat("node ", record.node_unreachable().node(), " is silent");
    case v1::Record::kNodeLost:
      return absl::StrCat("node ", record.node_lost().node(), " is lost");
    case v1::Record::kNodeSet:
      return node_set_words(record.node_set());
    case v1::Record::kPrepared:
      return absl::StrCat(member_of(record.prepared().member()), " is prepared on ",
                          record.prepared().report().node(), " at ", record.prepared().address(), ":",
                          record.prepared().port());
    case v1::Record::kPrepareFailed:
      return absl::StrCat(member_of(record.prepare_failed().member()), " could not be prepared on ",
                          record.prepare_failed().report().node(), ": ", record.prepare_failed().message());
    case v1::Record::kStarted:
      return absl::StrCat(member_of(record.started().member()), " started on ",
                          record.started().report().node());
    case v1::Record::kExited:
      return exited_words(record.exited());
    default:
      return "";
  }
}

}  // namespace

RecordText record_text(std::string_view value) {
  v1::Record record;
  if (decode_record(value, "", &record) == Decoded::kUndecodable)
    return {"undecodable", absl::StrCat(value.size(), " bytes that are no record of this cell"), 0};
  RecordText out{record.type(), "", record.wall_ms()};
  for (const auto words : {cell_words, job_words, node_words}) {
    if (out.words.empty()) out.words = words(record);
  }
  if (out.words.empty()) out.words = "a record of a newer release";
  return out;
}

}  // namespace muster::tools
