// Reads an embedded log, in the writer's process or beside it.
#pragma once

#include <memory>
#include <optional>

#include "storage/durable_end.h"
#include "storage/log.h"
#include "storage/segment_files.h"
#include "storage/writer_file.h"

namespace muster::storage {

// How far the log is durable, as another process than its writer's knows it: the living writer says so;
// without one, it is what lies in the files, synced. Any thread.
class OutsideEnd {
 public:
  OutsideEnd(std::string directory, DurableEnd* end) : directory_(std::move(directory)), end_(end) {}
  // Brings the end up to date. kUnavailable: a writer is just starting; try again.
  absl::Status refresh();

 private:
  absl::Status read_files();

  const std::string directory_;
  DurableEnd* const end_;
  std::mutex mutex_;
  std::optional<WriterFile> writer_;
  bool read_files_ = false;  // since a writer last lived
  bool known_ = false;       // the end has been known at least once
};

struct EmbeddedShared {
  explicit EmbeddedShared(const std::string& directory) : files(std::make_shared<SegmentFiles>(directory)) {}
  const std::shared_ptr<SegmentFiles> files;
  DurableEnd end;
  std::unique_ptr<OutsideEnd> outside;  // kReadOnly
};

std::unique_ptr<LogReader> make_embedded_reader(std::shared_ptr<EmbeddedShared> log, int64_t position);

}  // namespace muster::storage
