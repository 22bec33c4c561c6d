#include "statistics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace phonebit::tools {

double now_ms() {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return Milliseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

double canary_ms() {
  const double start = now_ms();
  volatile uint32_t total = 0;  // volatile: the compiler would know the sum
  for (uint32_t i = 0; i < 200000; ++i) total = total + (i & 7u);
  return now_ms() - start;
}

}  // namespace phonebit::tools
