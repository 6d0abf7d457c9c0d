// Checks of what operators and `update` ask.
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "queue/validate.h"
#include "queue/validate_text.h"

namespace muster::queue {
namespace {

absl::Status check_amounts(const google::protobuf::RepeatedPtrField<v1::Amount>& amounts,
                           const FieldPath& at) {
  if (amounts.size() > 64)
    return field_error(at, absl::StrCat(amounts.size(), " entries"), "must be at most 64");
  for (int i = 0; i < amounts.size(); ++i) {
    const FieldPath here{at.in, at.field, i};
    const std::string& resource = amounts[i].resource();
    const bool model = resource.size() > 4 && resource.compare(0, 4, "gpu.") == 0 &&
                       consists_of(std::string_view(resource).substr(4), "._- ", 128);
    if (resource != "cpu" && resource != "memory" && resource != "gpu" && !model)
      return field_error({&here, "resource"}, quoted(resource), "must be cpu, memory, gpu or gpu.MODEL");
    if (amounts[i].value() < 0)
      return field_error({&here, "value"}, absl::StrCat(amounts[i].value()), "must be 0 or more");
  }
  return absl::OkStatus();
}

absl::Status update_error(std::string_view key, std::string_view value, std::string_view allowed) {
  const FieldPath update{nullptr, "update"};
  return field_error({&update, key}, quoted(value), allowed);
}

absl::Status set_one(const std::string& key, const std::string& value, v1::Updated* out) {
  if (key == "priority") {
    int32_t priority = 0;
    if (!absl::SimpleAtoi(value, &priority) || priority < -1'000'000 || priority > 1'000'000)
      return update_error(key, value, "must be -1000000 to 1000000");
    out->set_priority(priority);
  } else if (key == "time_limit" || key == "expected") {
    int64_t ms = 0;
    if (!parse_duration_ms(value, &ms))
      return update_error(key, value, "must be a time, as in 30s, 5m, 12h; 0: none");
    if (key == "expected") {
      out->set_expected_ms(ms);
    } else {
      out->set_time_limit_ms(ms);
    }
  } else if (key == "queue") {
    if (absl::Status bad = validate_queue_name(value, {nullptr, "update.queue"}); !bad.ok()) return bad;
    out->set_queue(value);
  } else if (key == "array.running") {
    uint32_t running = 0;
    if (!absl::SimpleAtoi(value, &running) || running > kArrayElementsMax)
      return update_error(key, value, absl::StrCat("must be 0 to ", kArrayElementsMax, "; 0: no limit"));
    out->set_array_running(running);
  } else {
    return field_error({nullptr, "update"}, quoted(key),
                       "must be priority, time_limit, expected, queue or array.running");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status validate_queue_spec(const v1::QueueSpec& spec, const FieldPath& at) {
  if (absl::Status bad = validate_queue_name(spec.name(), {&at, "name"}); !bad.ok()) return bad;
  if (spec.weight() > 1'000'000)
    return field_error({&at, "weight"}, absl::StrCat(spec.weight()), "must be 1 to 1000000");
  if (absl::Status bad = check_amounts(spec.quota(), {&at, "quota"}); !bad.ok()) return bad;
  return check_amounts(spec.limit(), {&at, "limit"});
}

absl::Status parse_update(const v1::UpdateRequest& request, v1::Updated* out) {
  if (request.set().empty())
    return field_error({nullptr, "update"}, "nothing",
                       "must set priority, time_limit, expected, queue or array.running");
  for (const auto& [key, value] : request.set()) {
    if (absl::Status bad = set_one(key, value, out); !bad.ok()) return bad;
  }
  return absl::OkStatus();
}

}  // namespace muster::queue
