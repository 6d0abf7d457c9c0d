// The chain: a digest over the raw records up to a position, each link taken over the one before it. Two logs
// with the same chain at a position hold the same records up to there, so a log that was truncated or
// rewritten behind a reader's back is found by comparing 16 bytes. It finds damage and mix-ups; it is no
// signature (XXH3, 128 bits).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

struct Chain {
  uint64_t low = 0;
  uint64_t high = 0;
  auto operator<=>(const Chain&) const = default;

  std::string bytes() const;  // 16 bytes, as hex() writes them; "" for the empty chain
  std::string hex() const;
  static Chain from_bytes(std::string_view bytes);  // anything but 16 bytes gives the empty chain
};

// The chain after one more record.
Chain chain_next(const Chain& before, int64_t position, std::string_view key, std::string_view value);

}  // namespace muster
