#include "proto/records.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

std::string job_key(uint64_t job) {
  return absl::StrCat("job/", job);
}
std::string server_key(uint64_t session) {
  return absl::StrCat("server/", absl::Hex(session));
}

}  // namespace

std::string_view record_type(const v1::Record& record) {
  if (record.body_case() == v1::Record::BODY_NOT_SET) return {};
  return v1::Record::descriptor()->FindFieldByNumber(record.body_case())->message_type()->name();
}

std::string record_key(const v1::Record& record) {
  switch (record.body_case()) {
    case v1::Record::kServerJoined:
      return server_key(record.server_joined().session());
    case v1::Record::kServerBeat:
      return server_key(record.writer().session());
    case v1::Record::kQueueSet:
      return "queue/" + record.queue_set().queue().name();
    case v1::Record::kQueueRemoved:
      return "queue/" + record.queue_removed().name();
    case v1::Record::kSubmitted:
      return "key/" + record.submitted().key();
    case v1::Record::kCancelRequested:
      return job_key(record.cancel_requested().job());
    case v1::Record::kHoldRequested:
      return job_key(record.hold_requested().job());
    case v1::Record::kReleaseRequested:
      return job_key(record.release_requested().job());
    case v1::Record::kRequeueRequested:
      return job_key(record.requeue_requested().job());
    case v1::Record::kUpdated:
      return job_key(record.updated().job());
    case v1::Record::kSessionOpened:
      return "node/" + record.session_opened().node();
    case v1::Record::kNodeUnreachable:
      return "node/" + record.node_unreachable().node();
    case v1::Record::kNodeLost:
      return "node/" + record.node_lost().node();
    case v1::Record::kNodeSet:
      return "node/" + record.node_set().node();
    case v1::Record::kPlaced:
      return job_key(record.placed().job());
    case v1::Record::kGangStopped:
      return job_key(record.gang_stopped().job());
    case v1::Record::kMemberRestarted:
      return job_key(record.member_restarted().job());
    case v1::Record::kPrepared:
      return job_key(record.prepared().member().job());
    case v1::Record::kPrepareFailed:
      return job_key(record.prepare_failed().member().job());
    case v1::Record::kStarted:
      return job_key(record.started().member().job());
    case v1::Record::kExited:
      return job_key(record.exited().member().job());
    default:
      return "cell";
  }
}

Decoded decode_record(std::string_view value, std::string_view cell, v1::Record* record) {
  if (!record->ParseFromArray(value.data(), static_cast<int>(value.size()))) return Decoded::kUndecodable;
  if (record->type().empty() || (!cell.empty() && record->cell() != cell)) return Decoded::kUndecodable;
  if (record->format() > kFormat || record->format() == 0) return Decoded::kUnknown;
  if (record->body_case() == v1::Record::BODY_NOT_SET || record_type(*record) != record->type())
    return Decoded::kUnknown;
  return Decoded::kOk;
}

std::string record_json(int64_t position, std::string_view key, std::string_view value) {
  v1::Record record;
  std::string type = "undecodable", body;
  if (record.ParseFromArray(value.data(), static_cast<int>(value.size())) && !record.type().empty()) {
    type = record.type();
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = true;
    if (!google::protobuf::util::MessageToJsonString(record, &body, options).ok()) body.clear();
  }
  google::protobuf::Value as_json;  // quotes the key as JSON does
  as_json.set_string_value(std::string(key));
  std::string key_json;
  if (!google::protobuf::util::MessageToJsonString(as_json, &key_json).ok()) key_json = "null";
  as_json.set_string_value(type);
  std::string type_json;
  if (!google::protobuf::util::MessageToJsonString(as_json, &type_json).ok()) type_json = "null";
  if (body.empty()) body = absl::StrCat("{\"base64\":\"", absl::Base64Escape(std::string(value)), "\"}");
  return absl::StrCat("{\"schema\":1,\"position\":", position, ",\"type\":", type_json, ",\"key\":", key_json,
                      ",\"record\":", body, "}");
}

std::string job_name(uint64_t job, uint32_t element) {
  return element == 0 ? absl::StrCat(job) : absl::StrCat(job, "[", element - 1, "]");
}

}  // namespace muster
