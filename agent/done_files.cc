#include "agent/done_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/files.h"
#include "agent/report_journal.h"

namespace muster::agent {
namespace {

// The fence is in the name: an attempt of the same number, after a cell was begun anew, is another one.
std::string done_name(const v1::MemberRef& member) {
  return absl::StrCat(member_key(member), "-", absl::Hex(member.fence().nonce(), absl::kZeroPad16));
}

// Of the output, which is what can be large by design; what a job leaves in its own directory is not walked.
int64_t output_bytes(const std::string& dir) {
  struct stat status {};
  return stat((dir + "/output.log").c_str(), &status) == 0 ? status.st_size : 0;
}

}  // namespace

DoneFiles::DoneFiles(std::string dir, int64_t members_max, int64_t bytes_max)
    : dir_(std::move(dir)), members_max_(members_max), bytes_max_(bytes_max) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir_, error)) {
    struct stat status {};
    if (stat(entry.path().c_str(), &status) == 0)
      found.emplace_back(status.st_ctim.tv_sec * 1'000'000'000LL + status.st_ctim.tv_nsec,
                         entry.path().filename());
  }
  std::sort(found.begin(), found.end());
  thread_ = std::thread([this] { delete_loop(); });
  for (const auto& [time, name] : found) add({name, output_bytes(dir_ + "/" + name)});
}

DoneFiles::~DoneFiles() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void DoneFiles::keep(const std::string& task_dir, const v1::MemberRef& member) {
  Kept kept{done_name(member), output_bytes(task_dir)};
  if (rename(task_dir.c_str(), absl::StrCat(dir_, "/", kept.name).c_str()) == 0) add(std::move(kept));
}

std::string DoneFiles::find(const v1::MemberRef& member) const {
  const std::string path = absl::StrCat(dir_, "/", done_name(member));
  return exists(path) ? path : "";
}

void DoneFiles::add(Kept kept) {
  bytes_ += kept.bytes;
  kept_.push_back(std::move(kept));
  while (!kept_.empty() && (static_cast<int64_t>(kept_.size()) > members_max_ || bytes_ > bytes_max_)) {
    bytes_ -= kept_.front().bytes;
    {
      const std::lock_guard lock(mutex_);
      to_delete_.push_back(kept_.front().name);
    }
    changed_.notify_all();
    kept_.pop_front();
  }
}

void DoneFiles::delete_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !to_delete_.empty(); });
    if (stop_) return;  // the rest is found again at the next start
    const std::string path = absl::StrCat(dir_, "/", to_delete_.front());
    to_delete_.pop_front();
    lock.unlock();
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
    lock.lock();
  }
}

}  // namespace muster::agent
