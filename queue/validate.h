// Checks of what people send, before it becomes a record: every limit of the job schema, with the field's
// path, the value and what is allowed. Also fills the defaults, so that what the log holds never depends on a
// release.
//
// Pure. What the fold needs (a spec's tasks, names without NUL, sizes) is guaranteed for records made from
// here; the fold itself tolerates anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/record.pb.h"
#include "muster/v1/service.pb.h"

namespace muster::queue {

inline constexpr int kSubmitJobsMax = 1000;        // of one request
inline constexpr uint32_t kGangMembersMax = 8192;  // all tasks together
inline constexpr uint32_t kArrayElementsMax = 1'000'000;
inline constexpr int kTasksMax = 64;
inline constexpr size_t kSpecBytesMax = 880'000;  // a record is at most 900,000 with its envelope
inline constexpr size_t kKeyBytesMax = 128;
inline constexpr std::string_view kAnonymous = "anonymous";  // the user when nobody is named

// Where a field is: a chain on the stack, spelled only when something is wrong
// ("jobs[3].spec.tasks[1].replicas").
struct FieldPath {
  const FieldPath* in = nullptr;
  std::string_view field;
  int64_t index = -1;
  std::string text() const;
};

// INVALID_ARGUMENT "PATH: VALUE is not allowed; ALLOWED".
absl::Status field_error(const FieldPath& at, std::string_view value, std::string_view allowed);
// A text as it is shown in such a message: quoted, cut after 60 bytes, without control characters.
std::string quoted(std::string_view text);

// Fills the defaults in, then checks.
absl::Status validate_and_fill(v1::JobSpec* spec, const FieldPath& at);
absl::Status validate_key(std::string_view key, const FieldPath& at);
absl::Status validate_queue_name(std::string_view name, const FieldPath& at);
absl::Status validate_queue_spec(const v1::QueueSpec& spec, const FieldPath& at);
absl::Status validate_node_name(std::string_view name, const FieldPath& at);

// `update`'s KEY=VALUE pairs, as they are typed ("time_limit" = "12h").
absl::Status parse_update(const v1::UpdateRequest& request, v1::Updated* out);

// Reads "250ms", "30s", "5m", "12h", "7d", or "0". False: it is none of these, or over 100 years.
bool parse_duration_ms(std::string_view text, int64_t* out_ms);

// 1 to 128 of A-Z a-z 0-9 . _ -, and not only digits (those are ids).
bool valid_name(std::string_view name);

}  // namespace muster::queue
