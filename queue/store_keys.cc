// The store's keys: big-endian, so that they sort as numbers do.
#include "queue/state.h"

namespace muster::queue {
namespace {

void put(std::string* out, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    out->push_back(static_cast<char>(value >> shift & 255));
}

uint64_t take(std::string_view from, size_t offset, int bytes) {
  uint64_t out = 0;
  for (int i = 0; i < bytes && offset + i < from.size(); ++i)
    out = out << 8 | static_cast<unsigned char>(from[offset + i]);
  return out;
}

}  // namespace

std::string store_key(const GangKey& key) {
  std::string out;
  put(&out, key.job, 8);
  put(&out, key.element, 4);
  return out;
}

std::string event_key(uint64_t job, int64_t position) {
  std::string out;
  put(&out, job, 8);
  put(&out, static_cast<uint64_t>(position), 8);
  return out;
}

std::string expiry_key(int64_t expires_ms, std::string_view id) {
  std::string out;
  put(&out, static_cast<uint64_t>(expires_ms), 8);
  out.append(id);
  return out;
}

std::string position_key(int64_t position) {
  std::string out;
  put(&out, static_cast<uint64_t>(position), 8);
  return out;
}

GangKey gang_of_store_key(std::string_view key) {
  return {take(key, 0, 8), static_cast<uint32_t>(take(key, 8, 4))};
}

std::vector<int64_t> positions_of_event(std::string_view key, std::string_view value) {
  std::vector<int64_t> out;
  for (size_t at = 0; at < value.size(); at += 8) out.push_back(static_cast<int64_t>(take(value, at, 8)));
  out.push_back(static_cast<int64_t>(take(key, 8, 8)));
  return out;
}

int64_t expiry_of_key(std::string_view key) {
  return static_cast<int64_t>(take(key, 0, 8));
}

std::string owned(std::string_view user, std::string_view text) {
  std::string out(user);
  out.push_back('\0');
  out.append(text);
  return out;
}

}  // namespace muster::queue
