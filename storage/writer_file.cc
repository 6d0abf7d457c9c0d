#include "storage/writer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace muster::storage {
namespace {

// The end is written twice, once inverted: a reader that meets the write half-way reads again.
struct Content {
  int64_t pid = 0;
  int64_t durable_end = 0;
  int64_t inverted_end = ~int64_t{0};
};

std::string path_of(const std::string& directory) {
  return directory + "/writer";
}

struct flock whole_file(int16_t type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

absl::StatusOr<Content> read_content(const File& file) {
  Content content;
  absl::StatusOr<size_t> count = file.read_at(0, reinterpret_cast<char*>(&content), sizeof content);
  if (!count.ok()) return count.status();
  return content;
}

absl::Status write_content(const File& file, int64_t durable_end) {
  const Content content{getpid(), durable_end, ~durable_end};
  return file.write_at(0, {reinterpret_cast<const char*>(&content), sizeof content});
}

}  // namespace

absl::StatusOr<WriterFile> WriterFile::lock(const std::string& directory) {
  absl::StatusOr<File> file = File::open(path_of(directory), O_RDWR | O_CREAT);
  if (!file.ok()) return file.status();
  struct flock lock = whole_file(F_WRLCK);
  if (fcntl(file->fd(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return errno_status("cannot lock " + path_of(directory), errno);
    absl::StatusOr<Content> content = read_content(*file);
    return absl::FailedPreconditionError(
        absl::StrCat("embedded log ", directory, " is in use by another server (pid ",
                     content.ok() ? content->pid : 0, "). Stop it, or use another directory"));
  }
  absl::Status status = write_content(*file, -1);
  if (!status.ok()) return status;
  return WriterFile(std::move(*file));
}

absl::StatusOr<WriterFile> WriterFile::watch(const std::string& directory) {
  absl::StatusOr<File> file = File::open(path_of(directory), O_RDONLY);
  if (!file.ok()) return file.status();
  return WriterFile(std::move(*file));
}

void WriterFile::publish(int64_t durable_end) const {
  (void)write_content(file_, durable_end);
}

absl::StatusOr<bool> WriterFile::writer_lives() const {
  struct flock lock = whole_file(F_WRLCK);
  if (fcntl(file_.fd(), F_OFD_GETLK, &lock) != 0) return errno_status("cannot query the log's lock", errno);
  return lock.l_type != F_UNLCK;
}

absl::StatusOr<WriterFile::Published> WriterFile::published() const {
  while (true) {
    absl::StatusOr<bool> lives = writer_lives();
    if (!lives.ok()) return lives.status();
    if (!*lives) return Published{};
    absl::StatusOr<Content> content = read_content(file_);
    if (!content.ok()) return content.status();
    if (content->inverted_end == ~content->durable_end) return Published{true, content->durable_end};
  }
}

}  // namespace muster::storage
