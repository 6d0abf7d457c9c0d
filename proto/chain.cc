#include "proto/chain.h"

#include <xxhash.h>

namespace muster {

std::string Chain::bytes() const {
  if (*this == Chain{}) return {};
  std::string out;
  for (uint64_t half : {high, low}) {
    for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(half >> shift & 255);
  }
  return out;
}

std::string Chain::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (uint64_t half : {high, low}) {
    for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[half >> shift & 15];
  }
  return out;
}

Chain Chain::from_bytes(std::string_view bytes) {
  Chain out;
  if (bytes.size() != 16) return out;
  for (int i = 0; i < 8; ++i) out.high = out.high << 8 | static_cast<unsigned char>(bytes[i]);
  for (int i = 8; i < 16; ++i) out.low = out.low << 8 | static_cast<unsigned char>(bytes[i]);
  return out;
}

Chain chain_next(const Chain& before, int64_t position, std::string_view key, std::string_view value) {
  const XXH128_hash_t of_value = XXH3_128bits(value.data(), value.size());
  const XXH128_hash_t of_key = XXH3_128bits(key.data(), key.size());
  const uint64_t words[7] = {before.low,     before.high,   static_cast<uint64_t>(position),
                             of_key.low64,   of_key.high64, of_value.low64,
                             of_value.high64};
  const XXH128_hash_t all = XXH3_128bits(words, sizeof words);
  return {all.low64, all.high64};
}

}  // namespace muster
