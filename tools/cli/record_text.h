// What a record says, in words: "placed attempt 1 on a1, a2".
#pragma once

#include <string>
#include <string_view>

#include "muster/v1/record.pb.h"

namespace muster::tools {

struct RecordText {
  std::string type;  // "Placed"; "undecodable" for bytes that are no record
  std::string words;
  int64_t wall_ms = 0;
};
RecordText record_text(std::string_view value);

}  // namespace muster::tools
