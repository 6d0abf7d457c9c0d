#include "tools/cli/client.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/create_channel.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/verbs.h"

namespace muster::tools {
namespace {

constexpr const char* kRetryPayload = "muster/retry-after-ms";
constexpr int kReplyBytesMax = 64 << 20;
constexpr int64_t kSayAfterMs = 2000;

const google::protobuf::UnknownFieldSet& unknown_fields(const google::protobuf::Message& message) {
  return message.GetReflection()->GetUnknownFields(message);
}

// The delay of a google.rpc.RetryInfo within a google.rpc.Status: fields 3 (details, Any) and 1 (a Duration).
// Neither message is installed with gRPC, so that their few fields are read as unknown ones.
int64_t retry_delay_ms(const std::string& details) {
  google::protobuf::Empty status;
  if (!status.ParseFromString(details)) return 0;
  const auto& fields = unknown_fields(status);
  for (int i = 0; i < fields.field_count(); ++i) {
    google::protobuf::Any any;
    if (fields.field(i).number() != 3 ||
        fields.field(i).type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED ||
        !any.ParseFromString(fields.field(i).length_delimited()) ||
        any.type_url() != "type.googleapis.com/google.rpc.RetryInfo")
      continue;
    google::protobuf::Empty info;
    google::protobuf::Duration delay;
    if (!info.ParseFromString(any.value()) || unknown_fields(info).field_count() == 0) continue;
    const auto& field = unknown_fields(info).field(0);
    if (field.number() == 1 && field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
        delay.ParseFromString(field.length_delimited()))
      return std::clamp<int64_t>(delay.seconds() * 1000 + delay.nanos() / 1'000'000, 0, 60'000);
  }
  return 0;
}

}  // namespace

Client::Client(const std::string& address) : address_(address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kReplyBytesMax);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  stub_ = v1::Muster::NewStub(channel_);
}

Client::~Client() = default;

void Client::prepare(grpc::ClientContext* context, int64_t deadline_ms) {
  context->AddMetadata("muster-user", login_name());
  if (deadline_ms > 0)
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(deadline_ms));
}

std::string login_name() {
  const char* user = std::getenv("USER");
  if (user != nullptr && *user != 0) return user;
  const passwd* entry = getpwuid(getuid());
  return entry != nullptr ? entry->pw_name : absl::StrCat("uid-", getuid());
}

absl::Status Client::explained(const grpc::Status& status) const {
  if (status.ok()) return absl::OkStatus();
  std::string message = status.error_message();
  // A server that answers UNAVAILABLE says why; without a connection nobody did.
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && channel_->GetState(false) != GRPC_CHANNEL_READY)
    message = absl::StrCat("no server answers at ", address_,
                           "; start one with `muster local --dir DIR`, or set MUSTER_SERVER");
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED)
    message = absl::StrCat("the server at ", address_, " did not answer in time");
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED)
    message = absl::StrCat("the server at ", address_, " does not know this call; is it of another version?");
  if (message.empty()) message = absl::StrCat("the server failed with gRPC code ", status.error_code());
  absl::Status out(static_cast<absl::StatusCode>(status.error_code()), message);
  const int64_t retry = retry_delay_ms(status.error_details());
  if (retry > 0) out.SetPayload(kRetryPayload, absl::Cord(absl::StrCat(retry)));
  return out;
}

bool worth_retrying(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kResourceExhausted;
}

int64_t retry_after_ms(const absl::Status& status) {
  int64_t ms = 0;
  const auto payload = status.GetPayload(kRetryPayload);
  if (payload.has_value() && absl::SimpleAtoi(std::string(*payload), &ms)) return ms;
  return 0;
}

int exit_code_of(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kDone;
    case absl::StatusCode::kInvalidArgument:
      return kUsage;
    case absl::StatusCode::kNotFound:
      return kNotFound;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kResourceExhausted:
      return kDenied;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kNoServer;
    default:
      return kFailed;
  }
}

int fail(const absl::Status& status) {
  std::cerr << "muster: " << status.message() << "\n";
  return exit_code_of(status);
}

void sleep_ms(int64_t ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

int64_t monotonic_ms() {
  using std::chrono::steady_clock;
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now().time_since_epoch())
      .count();
}

int64_t wall_ms() {
  using std::chrono::system_clock;
  return std::chrono::duration_cast<std::chrono::milliseconds>(system_clock::now().time_since_epoch())
      .count();
}

bool Patience::wait(const absl::Status& why) {
  const int64_t now = monotonic_ms();
  if (began_ms_ < 0) {
    began_ms_ = now;
    delay_ms_ = 50;
  }
  const int64_t left = began_ms_ + patience_ms_ - now;
  if (left <= 0) return false;
  if (!said_ && now - began_ms_ >= kSayAfterMs) {
    said_ = true;
    std::cerr << "muster: " << why.message() << "; trying again for up to " << (left + 999) / 1000
              << " s more\n";
  }
  const int64_t asked = retry_after_ms(why);
  sleep_ms(std::min(left, asked > 0 ? asked : delay_ms_));
  delay_ms_ = std::min<int64_t>(delay_ms_ * 2, 1000);
  return true;
}

}  // namespace muster::tools
