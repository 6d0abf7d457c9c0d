// The files of members whose end is in the log: kept for `muster logs`, the newest ones, up to a number and a
// size; older ones are deleted by a thread of its own, since a job's directory may hold anything.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "muster/v1/record.pb.h"

namespace muster::agent {

class DoneFiles {
 public:
  // Finds what is in `dir` already, oldest first. The directory must exist.
  DoneFiles(std::string dir, int64_t members_max, int64_t bytes_max);
  ~DoneFiles();

  // Moves a finished member's directory here.
  void keep(const std::string& task_dir, const v1::MemberRef& member);
  // Where the files of this member are; empty: not here (any more).
  std::string find(const v1::MemberRef& member) const;

 private:
  struct Kept {
    std::string name;
    int64_t bytes = 0;
  };
  void add(Kept kept);
  void delete_loop();

  const std::string dir_;
  const int64_t members_max_;
  const int64_t bytes_max_;
  std::deque<Kept> kept_;  // oldest first; the owner's thread
  int64_t bytes_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> to_delete_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace muster::agent
