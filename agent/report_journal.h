// The reports that no server has acknowledged yet, on disk in DIR/reports, with the sequence numbers that the
// fold counts them by. A report is in the file before it is sent, and is dropped when the server says that it
// is in the log.
//
// What survives what: a write survives the agent's death at once. Not the machine's: then a new incarnation
// begins, whose sequence starts anew, and what the file may lack is said again from the task directories,
// whose marks are synced. So nothing here waits for the disk.
//
// The file: frames of u32 length, u32 CRC32C (of what follows), u8 kind, payload, little-endian. The first
// names the incarnation. A torn last frame was never sent: it is cut, and said. Damage anywhere else means
// that sequence numbers may be lost, so the caller must begin a new incarnation.
//
// One thread. Bounded: `full()` says when no new work should be taken on.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/fd.h"
#include "muster/v1/service.pb.h"

namespace muster::agent {

// "12.0.1.3": job, element, attempt and rank, as task directories are named.
std::string member_key(const v1::MemberRef& member);

class ReportJournal {
 public:
  struct Report {
    uint64_t sequence = 0;
    std::string member;  // member_key and fence
    v1::AgentMessage message;
  };

  // What it found is in `said` (empty: nothing to say). DATA_LOSS when the file is damaged or another
  // incarnation's: begin a new incarnation and `create`.
  static absl::StatusOr<std::unique_ptr<ReportJournal>> open(const std::string& path, uint64_t incarnation,
                                                             std::string* said);
  static absl::StatusOr<std::unique_ptr<ReportJournal>> create(const std::string& path, uint64_t incarnation);

  // Fills the report's header; in the file after `commit`, sent after that.
  uint64_t add(v1::AgentMessage report, const std::string& node);
  absl::Status commit();
  void acknowledge(uint64_t sequence);

  const std::deque<Report>& pending() const { return pending_; }
  bool has(const v1::MemberRef& member, v1::AgentMessage::WhatCase kind) const;
  bool full() const { return file_bytes_ > kFullBytes; }

 private:
  static constexpr int64_t kFullBytes = 64 << 20;
  static constexpr int64_t kRewriteBytes = 1 << 20;

  ReportJournal(std::string path, uint64_t incarnation) : path_(std::move(path)), incarnation_(incarnation) {}
  absl::Status load(std::string* said);
  bool take_frame(uint8_t kind, std::string_view payload);
  absl::Status rewrite();

  const std::string path_;
  const uint64_t incarnation_;
  Fd fd_;
  uint64_t last_sequence_ = 0;
  uint64_t acknowledged_ = 0;
  int64_t file_bytes_ = 0;
  std::string unwritten_;
  std::deque<Report> pending_;  // in sequence
};

}  // namespace muster::agent
