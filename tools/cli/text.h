// What verbs print: aligned tables, and times as people read them.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace muster::tools {

// Columns as wide as their widest cell, two spaces between them; the last is never padded. A column whose
// name begins with '>' is aligned to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> columns);
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.empty(); }
  void print(std::ostream& out, const std::string& indent = "") const;

 private:
  std::vector<std::string> columns_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

// Unix milliseconds in local time: "14:03:27", with the date when it isn't today's. 0: "-".
std::string clock_text(int64_t wall_ms, int64_t now_ms);
// "3m ago", "in 5m", "now"; two units at most.
std::string distance_text(int64_t wall_ms, int64_t now_ms);
// Both: "14:03:27 (3m ago)".
std::string when_text(int64_t wall_ms, int64_t now_ms);
// A length of time, two units at most: "1h05m", "12s", "250ms".
std::string span_text(int64_t ms);

// Without control characters, cut to `width` (with "…").
std::string one_line(const std::string& text, size_t width = 200);

}  // namespace muster::tools
