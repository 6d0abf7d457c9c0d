// Figures: stop watches, quantiles, and numbers as they are printed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace muster::bench {

class StopWatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  double ms() const { return seconds() * 1e3; }

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// Of at least one value; `permille` 500: the median.
inline double quantile(std::vector<double> values, size_t permille) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, values.size() * permille / 1000)];
}

inline double rounded(double value) {
  return std::round(value * 1e3) / 1e3;
}

}  // namespace muster::bench
