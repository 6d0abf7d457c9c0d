#include "queue/server/fold_marker.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace muster::server {

// Positions are kept plus one, so that a new file's zeros mean none.
struct FoldMarker::Mapped {
  std::atomic<int64_t> folding;
  std::atomic<int64_t> failed_at;
  std::atomic<int64_t> failures;
};

absl::StatusOr<std::unique_ptr<FoldMarker>> FoldMarker::open(const std::string& directory) {
  const std::string path = directory + "/folding";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  void* memory = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, sizeof(Mapped)) == 0)
    memory = mmap(nullptr, sizeof(Mapped), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int error = errno;
  if (fd >= 0) close(fd);
  if (memory == MAP_FAILED)
    return absl::UnavailableError(
        absl::StrCat(path, ": ", std::strerror(error), "; the server keeps a mark there"));
  std::unique_ptr<FoldMarker> out(new FoldMarker(static_cast<Mapped*>(memory)));
  if (const int64_t died_at = out->mapped_->folding.exchange(0); died_at > 0) out->note_failure(died_at - 1);
  return out;
}

FoldMarker::~FoldMarker() {
  munmap(mapped_, sizeof(Mapped));
}

void FoldMarker::begin(int64_t position) {
  mapped_->folding.store(position + 1, std::memory_order_relaxed);
}

void FoldMarker::end() {
  const int64_t folded = mapped_->folding.load(std::memory_order_relaxed);
  mapped_->folding.store(0, std::memory_order_relaxed);
  if (mapped_->failed_at.load(std::memory_order_relaxed) == folded) mapped_->failed_at.store(0);
}

void FoldMarker::note_failure(int64_t position) {
  const bool again = mapped_->failed_at.load() == position + 1;
  mapped_->failures.store(again ? mapped_->failures.load() + 1 : 1);
  mapped_->failed_at.store(position + 1);
  mapped_->folding.store(0);
}

int64_t FoldMarker::poisoned() const {
  return mapped_->failed_at.load() > 0 && mapped_->failures.load() >= 2 ? mapped_->failed_at.load() - 1 : -1;
}

}  // namespace muster::server
