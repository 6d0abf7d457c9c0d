#include "storage/segment.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster::storage {
namespace {

constexpr char kMagic[8] = {'M', 'U', 'S', 'T', 'E', 'R', 'L', 'G'};
constexpr uint32_t kVersion = 1;
// Small at first, for those who want one record; as large as this for those who read on.
constexpr size_t kBufferBytesMin = size_t{64} << 10;
constexpr size_t kBufferBytesMax = size_t{1} << 20;
static_assert(kFrameBytesMax <= kBufferBytesMax, "a frame fits the buffer");

}  // namespace

std::string segment_path(const std::string& directory, int64_t first) {
  return absl::StrCat(directory, "/", absl::Dec(first, absl::kZeroPad20), ".log");
}

absl::StatusOr<std::vector<int64_t>> list_segments(const std::string& directory) {
  std::vector<int64_t> out;
  std::error_code error;
  std::filesystem::directory_iterator files(directory, error), none;
  for (; !error && files != none; files.increment(error)) {
    const std::string name = files->path().filename().string();
    int64_t first;
    if (name.size() == 24 && name.ends_with(".log") && absl::SimpleAtoi(name.substr(0, 20), &first)) {
      out.push_back(first);
    }
  }
  if (error) return errno_status("cannot list " + directory, error.value());
  std::sort(out.begin(), out.end());
  return out;
}

std::string segment_header(int64_t first, const Chain& before) {
  std::string header(kSegmentHeaderBytes, '\0');
  std::memcpy(header.data(), kMagic, 8);
  std::memcpy(header.data() + 8, &kVersion, 4);
  std::memcpy(header.data() + 16, &first, 8);
  std::memcpy(header.data() + 24, &before.low, 8);
  std::memcpy(header.data() + 32, &before.high, 8);
  const uint32_t crc = crc32c(header);  // over the header with zeros in its own place
  std::memcpy(header.data() + 12, &crc, 4);
  return header;
}

absl::Status damage_error(const std::string& path, int64_t offset, int64_t expected_position,
                          const std::string& why) {
  return absl::DataLossError(absl::StrCat(
      "embedded log: ", path, " is damaged at offset ", offset, ": ", why, ". The last good position is ",
      expected_position - 1,
      "; records after it that were acknowledged are not readable. Restore the file from a copy"));
}

SegmentCursor::SegmentCursor(std::string path, int64_t first, File file)
    : path_(std::move(path)), first_(first), file_(std::move(file)), buffer_(kBufferBytesMin) {
  place_.position = first;
}

absl::StatusOr<std::unique_ptr<SegmentCursor>> SegmentCursor::open(const std::string& directory,
                                                                   int64_t first) {
  const std::string path = segment_path(directory, first);
  absl::StatusOr<File> file = File::open(path, O_RDONLY);
  if (!file.ok()) return file.status();
  std::unique_ptr<SegmentCursor> cursor(new SegmentCursor(path, first, std::move(*file)));
  char header[kSegmentHeaderBytes];
  absl::StatusOr<size_t> count = cursor->file_.read_at(0, header, sizeof header);
  if (!count.ok()) return count.status();
  if (*count == sizeof header) {
    Chain& chain = cursor->place_.chain;
    std::memcpy(&chain.low, header + 24, 8);
    std::memcpy(&chain.high, header + 32, 8);
  }
  if (std::string_view(header, *count) != segment_header(first, cursor->place_.chain)) {
    return damage_error(path, 0, first, "it does not begin with a segment's header");
  }
  return cursor;
}

void SegmentCursor::jump(const FramePlace& place) {
  place_ = place;
  forget();
}

absl::StatusOr<bool> SegmentCursor::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (was_full_ && buffer_.size() < kBufferBytesMax) buffer_.resize(buffer_.size() * 4);
  absl::StatusOr<size_t> count =
      file_.read_at(place_.offset + static_cast<int64_t>(end_), buffer_.data() + end_, buffer_.size() - end_);
  if (!count.ok())
    return absl::Status(count.status().code(), absl::StrCat(path_, ": ", count.status().message()));
  end_ += *count;
  was_full_ = end_ == buffer_.size();
  return *count > 0;
}

absl::StatusOr<SegmentCursor::Next> SegmentCursor::next(Frame* frame) {
  auto decode = [&] { return decode_frame({buffer_.data() + begin_, end_ - begin_}, frame); };
  FrameState state = decode();
  while (state == FrameState::kShort) {
    absl::StatusOr<bool> more = fill();
    if (!more.ok()) return more.status();
    if (!*more) break;
    state = decode();
  }
  if (state == FrameState::kShort) {
    if (begin_ == end_) return Next::kEnd;
    why_ = absl::StrCat("the file ends inside the record of position ", place_.position);
    return Next::kBad;
  }
  if (state == FrameState::kBad) {
    why_ = absl::StrCat("the record of position ", place_.position, " fails its checksum");
    return Next::kBad;
  }
  if (frame->position != place_.position) {
    why_ = absl::StrCat("it has the record of position ", frame->position, " where ", place_.position,
                        " belongs");
    return Next::kBad;
  }
  if (frame->chain != chain_next(place_.chain, frame->position, frame->key, frame->value)) {
    why_ = absl::StrCat("the record of position ", place_.position, " does not continue the chain before it");
    return Next::kBad;
  }
  begin_ += frame->bytes;
  place_ = {frame->position + 1, place_.offset + static_cast<int64_t>(frame->bytes), frame->chain};
  return Next::kFrame;
}

absl::Status SegmentCursor::damage() const {
  return damage_error(path_, place_.offset, place_.position, why_);
}

}  // namespace muster::storage
