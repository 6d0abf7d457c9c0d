#include "queue/validate_text.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "queue/validate.h"

namespace muster::queue {

bool consists_of(std::string_view text, std::string_view extra, size_t bytes_max) {
  if (text.empty() || text.size() > bytes_max) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           extra.find(c) != std::string_view::npos;
  });
}

bool only_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool valid_name(std::string_view name) {
  return consists_of(name, "._-", 128) && !only_digits(name);
}

bool valid_variable(std::string_view text) {
  return consists_of(text, "_", 128) && !(text.front() >= '0' && text.front() <= '9');
}

bool valid_label(std::string_view text) {
  return consists_of(text, "._-/", 128);
}

bool known_signal(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kSignals = {"HUP",  "INT",  "QUIT",  "ABRT", "KILL",
                                                                "USR1", "USR2", "PIPE",  "ALRM", "TERM",
                                                                "CHLD", "CONT", "WINCH", "STOP"};
  return std::find(kSignals.begin(), kSignals.end(), name) != kSignals.end();
}

std::string FieldPath::text() const {
  std::string out = in == nullptr ? "" : in->text();
  if (!out.empty() && !field.empty()) out += '.';
  out += field;
  if (index >= 0) absl::StrAppend(&out, "[", index, "]");
  return out;
}

std::string quoted(std::string_view text) {
  constexpr size_t kShown = 60;
  std::string out = "'";
  for (char c : text.substr(0, kShown)) out += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
  if (text.size() > kShown) absl::StrAppend(&out, "… (", text.size(), " bytes)");
  return out + "'";
}

absl::Status field_error(const FieldPath& at, std::string_view value, std::string_view allowed) {
  std::string message = at.text();
  message.append(": ").append(value).append(" is not allowed; ").append(allowed);
  return absl::InvalidArgumentError(message);
}

bool parse_duration_ms(std::string_view text, int64_t* out_ms) {
  struct Unit {
    std::string_view name;
    int64_t ms;
  };
  static constexpr Unit kUnits[] = {
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  constexpr int64_t kMost = int64_t{100} * 366 * 86'400'000;
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  int64_t number = 0;
  if (!absl::SimpleAtoi(absl::string_view(text.data(), digits), &number)) return false;
  const std::string_view unit = text.substr(digits);
  if (unit.empty() && number == 0) {
    *out_ms = 0;
    return true;
  }
  for (const Unit& known : kUnits) {
    if (unit != known.name || number > kMost / known.ms) continue;
    *out_ms = number * known.ms;
    return true;
  }
  return false;
}

}  // namespace muster::queue
