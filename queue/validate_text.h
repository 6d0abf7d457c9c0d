// The kinds of text that the schema allows, shared by the files of queue/validate.h.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster::queue {

// 1 to `bytes_max` letters, digits and characters of `extra`.
bool consists_of(std::string_view text, std::string_view extra, size_t bytes_max);
bool only_digits(std::string_view text);
// What may name an environment variable.
bool valid_variable(std::string_view text);
// A label's name, as in "zone" or "site/rack".
bool valid_label(std::string_view text);
// "TERM", "INT", … as kill(1) names them, without SIG.
bool known_signal(std::string_view name);

}  // namespace muster::queue
