#include "queue/digest.h"

#include <xxhash.h>

#include "proto/chain.h"

namespace muster::queue {

void StateDigest::add(const StateDigest& other) {
  low += other.low;
  high += other.high;
}

void StateDigest::subtract(const StateDigest& other) {
  low -= other.low;
  high -= other.high;
}

std::string StateDigest::hex() const {
  return Chain{low, high}.hex();
}

std::string StateDigest::bytes() const {
  const std::string bytes = Chain{low, high}.bytes();
  return bytes.empty() ? std::string(16, '\0') : bytes;
}

StateDigest StateDigest::from_bytes(std::string_view bytes) {
  const Chain chain = Chain::from_bytes(bytes);
  return {chain.low, chain.high};
}

StateDigest StateDigest::of(Entity table, std::string_view key, std::string_view value) {
  const XXH128_hash_t of_key =
      XXH3_128bits_withSeed(key.data(), key.size(), static_cast<uint64_t>(table) + 1);
  const XXH128_hash_t of_value = XXH3_128bits_withSeed(value.data(), value.size(), of_key.low64);
  return {of_value.low64 ^ of_key.high64, of_value.high64};
}

StateDigest StateDigest::of_text(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.low64, hash.high64};
}

}  // namespace muster::queue
