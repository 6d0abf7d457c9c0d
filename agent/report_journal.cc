#include "agent/report_journal.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "agent/files.h"

namespace muster::agent {
namespace {

constexpr size_t kHeaderBytes = 8;
constexpr size_t kFileBytesMax = 512 << 20;
enum Kind : uint8_t { kBegin = 1, kReport = 2, kAcknowledged = 3 };

void append_frame(std::string* out, Kind kind, std::string_view payload) {
  std::string body(1, static_cast<char>(kind));
  body.append(payload);
  const auto length = static_cast<uint32_t>(body.size());
  const uint32_t crc = crc32c(body);
  out->append(reinterpret_cast<const char*>(&length), 4);
  out->append(reinterpret_cast<const char*>(&crc), 4);
  out->append(body);
}

std::string u64(uint64_t value) {
  return std::string(reinterpret_cast<const char*>(&value), 8);
}
uint64_t u64(std::string_view bytes) {
  uint64_t value = 0;
  memcpy(&value, bytes.data(), 8);
  return value;
}

std::string begin_payload(uint64_t incarnation, uint64_t last_sequence) {
  return u64(incarnation) + u64(last_sequence);
}

std::string fenced_key(const v1::MemberRef& member) {
  return absl::StrCat(member_key(member), "@", member.fence().position(), "-", member.fence().nonce());
}

v1::ReportHeader* header_of(v1::AgentMessage* message) {
  switch (message->what_case()) {
    case v1::AgentMessage::kPrepared:
      return message->mutable_prepared()->mutable_report();
    case v1::AgentMessage::kPrepareFailed:
      return message->mutable_prepare_failed()->mutable_report();
    case v1::AgentMessage::kStarted:
      return message->mutable_started()->mutable_report();
    case v1::AgentMessage::kExited:
      return message->mutable_exited()->mutable_report();
    default:
      return nullptr;
  }
}

const v1::MemberRef& member_of(const v1::AgentMessage& message) {
  switch (message.what_case()) {
    case v1::AgentMessage::kPrepared:
      return message.prepared().member();
    case v1::AgentMessage::kPrepareFailed:
      return message.prepare_failed().member();
    case v1::AgentMessage::kStarted:
      return message.started().member();
    default:
      return message.exited().member();
  }
}

}  // namespace

std::string member_key(const v1::MemberRef& member) {
  return absl::StrCat(member.job(), ".", member.element(), ".", member.attempt(), ".", member.rank());
}

absl::StatusOr<std::unique_ptr<ReportJournal>> ReportJournal::open(const std::string& path,
                                                                   uint64_t incarnation, std::string* said) {
  std::unique_ptr<ReportJournal> journal(new ReportJournal(path, incarnation));
  if (absl::Status status = journal->load(said); !status.ok()) return status;
  return journal;
}

absl::StatusOr<std::unique_ptr<ReportJournal>> ReportJournal::create(const std::string& path,
                                                                     uint64_t incarnation) {
  std::unique_ptr<ReportJournal> journal(new ReportJournal(path, incarnation));
  if (absl::Status status = journal->rewrite(); !status.ok()) return status;
  return journal;
}

absl::Status ReportJournal::load(std::string* said) {
  absl::StatusOr<std::string> bytes = read_file(path_, kFileBytesMax);
  if (absl::IsNotFound(bytes.status())) return absl::DataLossError(absl::StrCat(path_, " is missing"));
  if (!bytes.ok()) return bytes.status();
  std::string_view rest = *bytes;
  size_t good = 0;
  while (!rest.empty()) {
    uint32_t length = 0;
    uint32_t crc = 0;
    const bool whole_header = rest.size() >= kHeaderBytes;
    if (whole_header) {
      memcpy(&length, rest.data(), 4);
      memcpy(&crc, rest.data() + 4, 4);
    }
    if (!whole_header || length > rest.size() - kHeaderBytes) break;  // torn
    const std::string_view body = rest.substr(kHeaderBytes, length);
    const bool last = rest.size() == kHeaderBytes + length;
    if (length == 0 || crc32c(body) != crc) {
      if (last && good > 0) break;  // torn
      return absl::DataLossError(absl::StrCat(path_, " is damaged at byte ", good));
    }
    if ((good == 0) != (body[0] == kBegin) || !take_frame(static_cast<uint8_t>(body[0]), body.substr(1)))
      return absl::DataLossError(
          absl::StrCat(path_, " does not continue this agent's reports, at byte ", good));
    good += kHeaderBytes + length;
    rest.remove_prefix(kHeaderBytes + length);
  }
  if (good == 0) return absl::DataLossError(absl::StrCat(path_, " has no beginning"));
  fd_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd_) return system_error("cannot open", path_, errno);
  if (!rest.empty()) {
    *said = absl::StrCat(path_, ": cut a torn report of ", rest.size(), " bytes at byte ", good,
                         "; it had not been sent");
    if (ftruncate(fd_.get(), static_cast<off_t>(good)) != 0) return system_error("cannot cut", path_, errno);
  }
  file_bytes_ = static_cast<int64_t>(good);
  return absl::OkStatus();
}

bool ReportJournal::take_frame(uint8_t kind, std::string_view payload) {
  switch (kind) {
    case kBegin:
      if (payload.size() != 16 || u64(payload) != incarnation_) return false;
      last_sequence_ = acknowledged_ = u64(payload.substr(8));
      return true;
    case kAcknowledged:
      if (payload.size() != 8) return false;
      acknowledged_ = u64(payload);
      while (!pending_.empty() && pending_.front().sequence <= acknowledged_) pending_.pop_front();
      return true;
    case kReport: {
      Report report;
      if (!report.message.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) return false;
      const v1::ReportHeader* header = header_of(&report.message);
      if (header == nullptr || header->sequence() != last_sequence_ + 1) return false;
      report.sequence = last_sequence_ = header->sequence();
      report.member = fenced_key(member_of(report.message));
      pending_.push_back(std::move(report));
      return true;
    }
    default:
      return false;
  }
}

uint64_t ReportJournal::add(v1::AgentMessage message, const std::string& node) {
  v1::ReportHeader* header = header_of(&message);
  header->set_node(node);
  header->set_incarnation(incarnation_);
  header->set_sequence(++last_sequence_);
  append_frame(&unwritten_, kReport, message.SerializeAsString());
  std::string member = fenced_key(member_of(message));
  pending_.push_back({last_sequence_, std::move(member), std::move(message)});
  return last_sequence_;
}

absl::Status ReportJournal::commit() {
  if (unwritten_.empty()) return absl::OkStatus();
  if (!write_all(fd_.get(), unwritten_)) {
    const int error = errno;
    // Half a frame must not lie before the ones that a later attempt writes.
    if (ftruncate(fd_.get(), file_bytes_) != 0) return system_error("cannot write or cut", path_, errno);
    return system_error("cannot write", path_, error);
  }
  file_bytes_ += static_cast<int64_t>(unwritten_.size());
  unwritten_.clear();
  if (file_bytes_ > kRewriteBytes && pending_.empty()) return rewrite();
  return absl::OkStatus();
}

void ReportJournal::acknowledge(uint64_t sequence) {
  if (sequence <= acknowledged_ || sequence > last_sequence_) return;
  acknowledged_ = sequence;
  while (!pending_.empty() && pending_.front().sequence <= sequence) pending_.pop_front();
  append_frame(&unwritten_, kAcknowledged, u64(sequence));
}

bool ReportJournal::has(const v1::MemberRef& member, v1::AgentMessage::WhatCase kind) const {
  const std::string key = fenced_key(member);
  for (const Report& report : pending_) {
    if (report.message.what_case() == kind && report.member == key) return true;
  }
  return false;
}

// With nothing pending, a beginning says all: which incarnation, and where its sequence goes on.
absl::Status ReportJournal::rewrite() {
  std::string bytes;
  append_frame(&bytes, kBegin, begin_payload(incarnation_, last_sequence_));
  if (absl::Status status = write_atomic(path_, bytes); !status.ok()) return status;
  fd_.reset(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd_) return system_error("cannot open", path_, errno);
  file_bytes_ = static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

}  // namespace muster::agent
