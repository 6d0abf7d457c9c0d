#include "storage/frame.h"

#include <isa-l/crc.h>

#include <bit>
#include <cstring>

namespace muster::storage {
namespace {

static_assert(std::endian::native == std::endian::little, "segment files are little-endian");

template <typename T>
void store(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <typename T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint32_t frame_crc(std::string_view frame) {
  return crc32c(frame.substr(8), crc32c(frame.substr(0, 4)));
}

}  // namespace

uint32_t crc32c(std::string_view bytes, uint32_t before) {
  auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));  // isa-l only reads it
  return ~crc32_iscsi(data, static_cast<int>(bytes.size()), ~before);
}

void append_frame(std::string* out, int64_t position, const Chain& chain, int64_t timestamp_ms,
                  int64_t durable, const LogEntry& entry) {
  char head[kFrameHeaderBytes];
  const size_t length = kFrameHeaderBytes + entry.key.size() + entry.type.size() + entry.value.size();
  store(head, static_cast<uint32_t>(length));
  store(head + 4, uint32_t{0});
  store(head + 8, position);
  store(head + 16, chain.low);
  store(head + 24, chain.high);
  store(head + 32, timestamp_ms);
  store(head + 40, durable);
  store(head + 48, entry.format);
  store(head + 52, static_cast<uint32_t>(entry.key.size()));
  store(head + 56, static_cast<uint32_t>(entry.type.size()));
  const size_t start = out->size();
  out->append(head, sizeof head).append(entry.key).append(entry.type).append(entry.value);
  store(out->data() + start + 4, frame_crc(std::string_view(*out).substr(start)));
}

FrameState decode_frame(std::string_view buffer, Frame* frame) {
  if (buffer.size() < sizeof(uint32_t)) return FrameState::kShort;
  const size_t length = load<uint32_t>(buffer.data());
  if (length < kFrameHeaderBytes || length > kFrameBytesMax) return FrameState::kBad;
  if (buffer.size() < length) return FrameState::kShort;
  buffer = buffer.substr(0, length);
  if (frame_crc(buffer) != load<uint32_t>(buffer.data() + 4)) return FrameState::kBad;
  const char* at = buffer.data();
  const size_t key_bytes = load<uint32_t>(at + 52);
  const size_t type_bytes = load<uint32_t>(at + 56);
  if (key_bytes + type_bytes > length - kFrameHeaderBytes) return FrameState::kBad;
  frame->bytes = length;
  frame->position = load<int64_t>(at + 8);
  frame->chain = {load<uint64_t>(at + 16), load<uint64_t>(at + 24)};
  frame->timestamp_ms = load<int64_t>(at + 32);
  frame->durable = load<int64_t>(at + 40);
  frame->format = load<uint32_t>(at + 48);
  frame->key = buffer.substr(kFrameHeaderBytes, key_bytes);
  frame->type = buffer.substr(kFrameHeaderBytes + key_bytes, type_bytes);
  frame->value = buffer.substr(kFrameHeaderBytes + key_bytes + type_bytes);
  return FrameState::kWhole;
}

}  // namespace muster::storage
