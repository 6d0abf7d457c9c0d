// The log below, without Muster: the same records (keys and values) appended by the plainest means there are.
// Kafka: plain librdkafka, produced and consumed back (raw_kafka.h). Embedded: write() and one fdatasync to a
// file on the same disk.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/log.h"
#include "tools/bench/place.h"

namespace muster::bench {

// The `Submitted` records of the place's log, in order; no server may write to it now.
absl::StatusOr<std::vector<storage::LogEntry>> submitted_records(const Place& place);

// Records a second; the file is synced once for `batch` records.
absl::StatusOr<double> raw_per_s(const Place& place, const std::vector<storage::LogEntry>& records,
                                 uint64_t batch);
// One after another, milliseconds each: until consumed, or synced.
absl::StatusOr<std::vector<double>> raw_latencies_ms(const Place& place,
                                                     const std::vector<storage::LogEntry>& records);

// kInvalidArgument for memory:, which has nothing below it to compare with.
absl::Status check_has_raw(const Place& place);

}  // namespace muster::bench
