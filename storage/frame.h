// One record as it lies in a segment file, little-endian:
//
//     0  u32 length     of the whole frame
//     4  u32 crc32c     of every other byte of the frame
//     8  i64 position
//    16  16 bytes       chain, after this record (proto/chain.h)
//    32  i64 timestamp  CLOCK_BOOTTIME of the writer's machine, milliseconds
//    40  i64 durable    every position below it was synced before this frame was written
//    48  u32 format
//    52  u32 key bytes
//    56  u32 type bytes
//    60  key, type, value
//
// `durable` is what tells a torn tail from damage: a broken frame is a torn tail, which nobody was ever told
// of, only if no later frame says that it had been synced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proto/chain.h"
#include "storage/log.h"

namespace muster::storage {

inline constexpr size_t kFrameHeaderBytes = 60;
inline constexpr size_t kFrameBytesMax = kFrameHeaderBytes + kRecordBytesMax + 1000;

// A frame as read: the views lie in the buffer that was decoded.
struct Frame {
  size_t bytes = 0;
  int64_t position = 0;
  Chain chain;
  int64_t timestamp_ms = 0;
  int64_t durable = 0;
  uint32_t format = 0;
  std::string_view key;
  std::string_view type;
  std::string_view value;
};

enum class FrameState {
  kWhole,
  kShort,  // the buffer ends before the frame does
  kBad,    // no frame: an impossible length, or another checksum
};

uint32_t crc32c(std::string_view bytes, uint32_t before = 0);

void append_frame(std::string* out, int64_t position, const Chain& chain, int64_t timestamp_ms,
                  int64_t durable, const LogEntry& entry);
FrameState decode_frame(std::string_view buffer, Frame* frame);

}  // namespace muster::storage
