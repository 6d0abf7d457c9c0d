// The state digest: an order-free sum over entities (table, key, value), so that it is kept by subtracting
// what an entity was and adding what it is, and two states that hold the same entities have the same one,
// however they got there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "queue/history.h"

namespace muster::queue {

struct StateDigest {
  uint64_t low = 0;
  uint64_t high = 0;
  void add(const StateDigest& other);
  void subtract(const StateDigest& other);
  bool operator==(const StateDigest&) const = default;
  std::string hex() const;
  std::string bytes() const;
  static StateDigest from_bytes(std::string_view bytes);
  static StateDigest of(Entity table, std::string_view key, std::string_view value);
  static StateDigest of_text(std::string_view text);
};

}  // namespace muster::queue
