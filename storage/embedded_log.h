// The log of one machine: segment files in a directory (segment.h, frame.h), one fdatasync for all groups
// that wait, one writer (writer_file.h). Records are visible once they are synced, here and in other
// processes.
//
// Failures. A full disk: the file is cut back to its last good size, synced, and the group fails with
// kUnavailable; the next may succeed. A sync that fails tells nothing about what is on the disk and is never
// tried again: kUnknown, and recover() opens the segment anew, cut back to what was synced before.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "storage/log.h"
#include "storage/open_log.h"

namespace muster::storage {

// Opens or, with kWrite, makes the directory. `*notice` gets what an operator should know (a torn tail that
// was cut), or stays as it is. kFailedPrecondition: another writer lives. kNotFound: kReadOnly and no such
// log. kDataLoss: damage.
absl::StatusOr<std::unique_ptr<Log>> open_embedded_log(const std::string& directory, LogMode mode,
                                                       std::string* notice);

}  // namespace muster::storage
