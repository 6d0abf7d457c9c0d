// The known word nearest to a misspelt one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::spec {

// Empty when none is near enough to be meant: more than a third of the letters would have to change.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// "; did you mean 'replicas'?", or "" when none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace muster::spec
