#include "tools/cli/json.h"

namespace muster::tools {

Json json_object() {
  Json out;
  out["schema"] = 1;
  return out;
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace muster::tools
