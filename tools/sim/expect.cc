// Expectations: "jobs.X.attempts.0.end: PREEMPTED", "metrics.mean_wait_s: 0..12.5".
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/sim/results.h"

namespace muster::sim {
namespace {

using tools::Json;

// One step of a path: a key of an object; of a list an index, or the last element of this name.
const Json* step_into(const Json& from, const std::string& step) {
  if (from.is_object()) {
    const auto it = from.find(step);
    return it == from.end() ? nullptr : &*it;
  }
  if (!from.is_array()) return nullptr;
  const Json* found = nullptr;
  for (const Json& element : from) {
    if (element.is_object() && element.contains("name") && element["name"] == step) found = &element;
  }
  uint64_t index = 0;
  if (found == nullptr && absl::SimpleAtoi(step, &index) && index < from.size()) found = &from[index];
  return found;
}

const Json* find_path(const Json& results, const std::string& path) {
  const Json* at = &results;
  std::string pending;  // a name may have dots of its own: the longest that is there counts
  for (const auto& part : absl::StrSplit(path, '.')) {
    pending = pending.empty() ? std::string(part) : absl::StrCat(pending, ".", part);
    if (const Json* next = step_into(*at, pending)) {
      at = next;
      pending.clear();
    }
  }
  return pending.empty() ? at : nullptr;
}

bool holds(const Json& is, const std::string& expected) {
  const size_t dots = expected.find("..");
  double low = 0, high = 0;
  if (dots != std::string::npos && absl::SimpleAtod(expected.substr(0, dots), &low) &&
      absl::SimpleAtod(expected.substr(dots + 2), &high))
    return is.is_number() && is.get<double>() >= low && is.get<double>() <= high;
  if (is.is_string()) return is.get<std::string>() == expected;
  if (is.is_null()) return expected == "null";
  if (is.is_boolean()) return expected == (is.get<bool>() ? "true" : "false");
  if (is.is_number() && absl::SimpleAtod(expected, &low)) return std::abs(is.get<double>() - low) < 1e-9;
  if (is.is_array() || is.is_object())
    return is == Json::parse(expected, nullptr, /*allow_exceptions=*/false);
  return false;
}

}  // namespace

std::vector<std::string> unmet(const std::vector<Expectation>& expect, const Json& results) {
  std::vector<std::string> out;
  for (const Expectation& expectation : expect) {
    const Json* is = find_path(results, expectation.path);
    if (is == nullptr) {
      out.push_back(absl::StrCat(expectation.where, ": the results have no '", expectation.path, "'"));
    } else if (!holds(*is, expectation.value)) {
      out.push_back(absl::StrCat(expectation.where, ": ", expectation.path, " is ", is->dump(), ", expected ",
                                 expectation.value));
    }
  }
  return out;
}

}  // namespace muster::sim
