// Making and reading records: the envelope, the type's name, the entity id that is the record's key.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "muster/v1/record.pb.h"

namespace muster {

inline constexpr uint32_t kFormat = 1;  // the newest format that this release reads and writes

// The body's message name ("Submitted"), or "" without a body.
std::string_view record_type(const v1::Record& record);

// The entity that a record is about: "job/12", "node/a1", "queue/x", "server/<hex>", "cell".
// A Submitted has no job yet: "key/<idempotency key>".
std::string record_key(const v1::Record& record);

// What became of reading a record's bytes.
enum class Decoded {
  kOk,
  kUndecodable,  // not an envelope of this cell: a counted no-op
  kUnknown,      // an envelope of a type or format that this release doesn't know: the server must stop
};
Decoded decode_record(std::string_view value, std::string_view cell, v1::Record* record);

// One JSON object on one line: position, type, key, record.
std::string record_json(int64_t position, std::string_view key, std::string_view value);

// "12", "12[3]", "12[3]@2", "12.actor.0": how people write jobs, elements and members. element = index + 1,
// 0: none.
std::string job_name(uint64_t job, uint32_t element);

}  // namespace muster
