// The base of a log's positions: LogOpened.base of its first record, 0 when that is anything else.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::storage {

int64_t opened_base(std::string_view first_value);

}  // namespace muster::storage
