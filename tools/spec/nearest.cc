#include "tools/spec/nearest.h"

#include <algorithm>

namespace muster::spec {
namespace {

constexpr size_t kWordBytesMax = 64;

// Damerau's distance (a letter changed, missing, added, or two neighbours swapped).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  if (word.size() > kWordBytesMax) return "";
  std::string best;
  size_t least = std::max<size_t>(word.size(), 3) / 3 + 1;
  for (const std::string& candidate : known) {
    const size_t changes = distance(word, candidate);
    if (changes >= least || changes >= candidate.size()) continue;
    least = changes;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

}  // namespace muster::spec
