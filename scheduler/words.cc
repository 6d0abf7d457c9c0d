#include "scheduler/words.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster::scheduler {
namespace {

std::string memory_number(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"", "Ki", "Mi", "Gi", "Ti"};
  size_t unit = 0;
  int64_t size = 1;
  while (unit + 1 < kUnits.size() && bytes >= size * 1024) {
    size *= 1024;
    ++unit;
  }
  const int64_t tenth = bytes % size * 10 / size;
  return absl::StrCat(bytes / size, tenth == 0 ? "" : absl::StrCat(".", tenth), kUnits[unit]);
}

size_t edits(const std::string& from, const std::string& to) {
  std::vector<size_t> row(to.size() + 1);
  for (size_t i = 0; i <= to.size(); ++i) row[i] = i;
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t changed = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[to.size()];
}

}  // namespace

int64_t amount(const Resources& of, Kind kind) {
  switch (kind) {
    case Kind::kGpus:
      return of.gpus;
    case Kind::kCpu:
      return of.cpu_milli;
    case Kind::kMemory:
      return of.memory_bytes;
  }
  return 0;
}

std::string number(Kind kind, int64_t value) {
  switch (kind) {
    case Kind::kGpus:
      return absl::StrCat(value);
    case Kind::kCpu:
      return value % 1000 == 0 ? absl::StrCat(value / 1000) : absl::StrCat(value, "m");
    case Kind::kMemory:
      return memory_number(value);
  }
  return "";
}

std::string noun(Kind kind, int64_t value) {
  switch (kind) {
    case Kind::kGpus:
      return value == 1 ? "GPU" : "GPUs";
    case Kind::kCpu:
      return value == 1000 || value % 1000 != 0 ? "CPU" : "CPUs";
    case Kind::kMemory:
      return "of memory";
  }
  return "";
}

std::string words(Kind kind, int64_t value) {
  return absl::StrCat(number(kind, value), " ", noun(kind, value));
}

std::string queue_number(const std::string& resource, int64_t value) {
  if (resource == "cpu") return number(Kind::kCpu, value);
  if (resource == "memory") return number(Kind::kMemory, value);
  return value % 1000 == 0 ? absl::StrCat(value / 1000) : absl::StrCat(value, "m");
}

std::string queue_words(const std::string& resource, int64_t value) {
  if (resource == "cpu") return words(Kind::kCpu, value);
  if (resource == "memory") return words(Kind::kMemory, value);
  if (resource == "gpu") return absl::StrCat(queue_number(resource, value), value == 1000 ? " GPU" : " GPUs");
  return absl::StrCat(queue_number(resource, value), " ", resource);
}

std::string counted(int64_t count, const std::string& one) {
  return absl::StrCat(count, " ", one, count == 1 ? "" : "s");
}

std::string duration(int64_t ms) {
  const int64_t s = (ms + 999) / 1000;
  if (s < 60) return absl::StrCat(s, " s");
  if (s < 3600) return absl::StrCat(s / 60, " min", s % 60 == 0 ? "" : absl::StrCat(" ", s % 60, " s"));
  return absl::StrCat(s / 3600, " h", s % 3600 / 60 == 0 ? "" : absl::StrCat(" ", s % 3600 / 60, " min"));
}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  size_t fewest = 0;
  for (const std::string& candidate : candidates) {
    const size_t count = edits(word, candidate);
    if (best != nullptr && count >= fewest) continue;
    best = &candidate;
    fewest = count;
  }
  return best == nullptr ? "" : *best;
}

}  // namespace muster::scheduler
