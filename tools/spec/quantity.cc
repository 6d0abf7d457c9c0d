#include "tools/spec/quantity.h"

#include <array>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::spec {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int kFractionDigitsMax = 9;

struct Unit {
  std::string_view name;
  int64_t factor;
};
constexpr std::array<Unit, 12> kByteUnits = {{{"Ei", int64_t{1} << 60},
                                              {"Pi", int64_t{1} << 50},
                                              {"Ti", int64_t{1} << 40},
                                              {"Gi", int64_t{1} << 30},
                                              {"Mi", int64_t{1} << 20},
                                              {"Ki", int64_t{1} << 10},
                                              {"E", 1'000'000'000'000'000'000},
                                              {"P", 1'000'000'000'000'000},
                                              {"T", 1'000'000'000'000},
                                              {"G", 1'000'000'000},
                                              {"M", 1'000'000},
                                              {"K", 1'000}}};
constexpr std::array<Unit, 5> kTimeUnits = {
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};

absl::Status wrong(std::string_view text, std::string_view rule) {
  constexpr size_t kShown = 60;
  std::string message = "'";
  for (char c : text.substr(0, kShown)) message += static_cast<unsigned char>(c) < 32 ? '?' : c;
  message.append(text.size() > kShown ? "…' " : "' ").append(rule);
  return absl::InvalidArgumentError(message);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Takes "12" or "12.345" off the front. False: no digits, too many, or over 64 bits after `factor`.
struct Number {
  int64_t whole = 0;
  int64_t fraction = 0;  // of 10^digits
  int digits = 0;
};
bool take_number(std::string_view* text, Number* out) {
  size_t at = 0;
  const auto digit = [&](int64_t* into) {
    if (*into > (kMax - 9) / 10) return false;
    *into = *into * 10 + (text->at(at++) - '0');
    return true;
  };
  while (at < text->size() && is_digit((*text)[at])) {
    if (!digit(&out->whole)) return false;
  }
  if (at == 0) return false;
  if (at + 1 < text->size() && (*text)[at] == '.' && is_digit((*text)[at + 1])) {
    ++at;
    while (at < text->size() && is_digit((*text)[at])) {
      if (++out->digits > kFractionDigitsMax || !digit(&out->fraction)) return false;
    }
  }
  text->remove_prefix(at);
  return true;
}

// number × factor, rounded up; exact = false if it had to be rounded. False: over 64 bits.
bool times(const Number& number, int64_t factor, int64_t* out, bool* exact) {
  __int128 scale = 1;
  for (int i = 0; i < number.digits; ++i) scale *= 10;
  const __int128 fraction = static_cast<__int128>(number.fraction) * factor;
  *exact = fraction % scale == 0;
  const __int128 value = static_cast<__int128>(number.whole) * factor + fraction / scale + (*exact ? 0 : 1);
  if (value > kMax) return false;
  *out = static_cast<int64_t>(value);
  return true;
}

absl::StatusOr<int64_t> parse_thousandths(std::string_view text, bool milli_suffix, std::string_view rule) {
  std::string_view rest = text;
  Number number;
  bool exact = false;
  int64_t out = 0;
  if (!take_number(&rest, &number)) return wrong(text, rule);
  const bool milli = milli_suffix && rest == "m";
  if (!rest.empty() && !milli) return wrong(text, rule);
  if (!times(number, milli ? 1 : 1000, &out, &exact) || !exact) return wrong(text, rule);
  return out;
}

}  // namespace

absl::StatusOr<int64_t> parse_cpu_milli(std::string_view text) {
  return parse_thousandths(text, true, "is not a number of CPUs; write 4, 0.5 or 500m");
}

absl::StatusOr<int64_t> parse_gpu_milli(std::string_view text) {
  return parse_thousandths(text, false, "is not a number of GPUs; write 8");
}

absl::StatusOr<int64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kRule =
      "is not a size; write 16Gi, 500M or a number of bytes (Ki, Mi, Gi, Ti are powers of 1024; K, M, G, T "
      "of "
      "1000)";
  std::string_view rest = text;
  Number number;
  if (!take_number(&rest, &number)) return wrong(text, kRule);
  int64_t factor = rest.empty() ? 1 : 0;
  for (const Unit& unit : kByteUnits) {
    if (rest == unit.name) factor = unit.factor;
  }
  int64_t out = 0;
  bool exact = false;
  if (factor == 0 || (factor == 1 && number.digits > 0) || !times(number, factor, &out, &exact))
    return wrong(text, kRule);
  return out;
}

absl::StatusOr<int64_t> parse_duration_ms(std::string_view text) {
  constexpr std::string_view kRule = "is not a time; write 250ms, 30s, 10m, 1h30m, 7d or a number of seconds";
  std::string_view rest = text;
  int64_t total = 0;
  size_t next_unit = 0;  // units come largest first, each once
  while (!rest.empty() || next_unit == 0) {
    Number number;
    if (!take_number(&rest, &number)) return wrong(text, kRule);
    const size_t letters = std::min(rest.find_first_of("0123456789"), rest.size());
    const std::string_view name = rest.substr(0, letters);
    rest.remove_prefix(letters);
    size_t unit = name.empty() && next_unit == 0 && rest.empty() ? 3 : next_unit;
    while (!name.empty() && unit < kTimeUnits.size() && kTimeUnits[unit].name != name) ++unit;
    int64_t part = 0;
    bool exact = false;
    if ((name.empty() && next_unit != 0) || unit >= kTimeUnits.size() ||
        !times(number, kTimeUnits[unit].factor, &part, &exact) || !exact || part > kMax - total)
      return wrong(text, kRule);
    total += part;
    next_unit = unit + 1;
  }
  return total;
}

absl::StatusOr<int64_t> parse_integer(std::string_view text, int64_t least, int64_t most) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &value) || value < least || value > most)
    return wrong(text, absl::StrCat("is not a whole number from ", least, " to ", most));
  return value;
}

ParseQuantity parser_of(std::string_view resource) {
  if (resource == "cpu") return parse_cpu_milli;
  return resource == "memory" ? parse_bytes : parse_gpu_milli;
}

std::string print_cpu(int64_t milli) {
  return milli % 1000 == 0 ? absl::StrCat(milli / 1000) : absl::StrCat(milli, "m");
}

std::string print_gpu(int64_t milli) {
  if (milli % 1000 == 0) return absl::StrCat(milli / 1000);
  std::string out = absl::StrFormat("%d.%03d", milli / 1000, milli % 1000);
  out.erase(out.find_last_not_of('0') + 1);
  return out;
}

std::string print_bytes(int64_t bytes) {
  if (bytes == 0) return "0";
  for (const Unit& unit : kByteUnits) {
    if (bytes % unit.factor == 0)
      return absl::StrCat(bytes / unit.factor, absl::string_view(unit.name.data(), unit.name.size()));
  }
  return absl::StrCat(bytes);
}

std::string short_bytes(int64_t bytes) {
  for (size_t i = 0; i < 6; ++i) {
    const Unit& unit = kByteUnits[i];
    if (bytes < unit.factor) continue;
    const std::string name(unit.name);
    if (bytes % unit.factor == 0) return absl::StrCat(bytes / unit.factor, name);
    return absl::StrFormat("%.1f%s", static_cast<double>(bytes) / static_cast<double>(unit.factor), name);
  }
  return absl::StrCat(bytes);
}

std::string print_duration(int64_t ms) {
  if (ms == 0) return "0s";
  std::string out;
  for (const Unit& unit : kTimeUnits) {
    if (ms < unit.factor) continue;
    absl::StrAppend(&out, ms / unit.factor, absl::string_view(unit.name.data(), unit.name.size()));
    ms %= unit.factor;
  }
  return out;
}

}  // namespace muster::spec
