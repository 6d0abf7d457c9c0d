#include "tools/cli/text.h"

#include <algorithm>
#include <ctime>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace muster::tools {
namespace {

// Characters, not bytes: continuation bytes of UTF-8 take no room.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::tm local(int64_t wall_ms) {
  const auto seconds = static_cast<std::time_t>(wall_ms / 1000);
  std::tm out = {};
  localtime_r(&seconds, &out);
  return out;
}

}  // namespace

Table::Table(std::vector<std::string> columns) : columns_(std::move(columns)) {
  for (std::string& column : columns_) {
    right_.push_back(column.starts_with(">"));
    if (right_.back()) column.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> row) {
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

void Table::print(std::ostream& out, const std::string& indent) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(width_of(columns_[i]));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  const auto print_row = [&](const std::vector<std::string>& row) {
    std::string line = indent;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width_of(row[i]), ' ');
      if (i > 0) line += "  ";
      line += right_[i] ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  };
  print_row(columns_);
  for (const auto& row : rows_) print_row(row);
}

std::string clock_text(int64_t wall_ms, int64_t now_ms) {
  if (wall_ms == 0) return "-";
  const std::tm then = local(wall_ms), now = local(now_ms);
  char text[32];
  const bool today = then.tm_year == now.tm_year && then.tm_yday == now.tm_yday;
  std::strftime(text, sizeof text, today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then);
  return text;
}

std::string span_text(int64_t ms) {
  if (ms < 1000) return absl::StrCat(ms, "ms");
  const int64_t s = ms / 1000;
  if (s < 60) return absl::StrCat(s, "s");
  if (s < 3600) return s % 60 == 0 ? absl::StrCat(s / 60, "m") : absl::StrFormat("%dm%02ds", s / 60, s % 60);
  if (s < 86'400)
    return s / 60 % 60 == 0 ? absl::StrCat(s / 3600, "h")
                            : absl::StrFormat("%dh%02dm", s / 3600, s / 60 % 60);
  return s / 3600 % 24 == 0 ? absl::StrCat(s / 86'400, "d")
                            : absl::StrFormat("%dd%02dh", s / 86'400, s / 3600 % 24);
}

std::string distance_text(int64_t wall_ms, int64_t now_ms) {
  const int64_t ago = now_ms - wall_ms;
  if (ago > -1000 && ago < 1000) return "now";
  return ago > 0 ? span_text(ago) + " ago" : "in " + span_text(-ago);
}

std::string when_text(int64_t wall_ms, int64_t now_ms) {
  if (wall_ms == 0) return "-";
  return clock_text(wall_ms, now_ms) + " (" + distance_text(wall_ms, now_ms) + ")";
}

std::string one_line(const std::string& text, size_t width) {
  std::string out;
  size_t room = width;
  for (char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (starts && room-- == 0) return out + "…";
    out += static_cast<unsigned char>(c) < 32 || c == 127 ? ' ' : c;
  }
  return out;
}

}  // namespace muster::tools
