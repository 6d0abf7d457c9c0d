// JSON as this program prints it: one object a line, keys in the order they were set, `schema: 1` first,
// bytes that are not UTF-8 replaced.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace muster::tools {

using Json = nlohmann::ordered_json;

Json json_object();  // {"schema": 1}
std::string line_of(const Json& json);

}  // namespace muster::tools
