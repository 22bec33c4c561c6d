#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "measure/noise_probe.h"

namespace phonebit::engine::measure {

double now_ms() { return 1e3 * now_s(); }

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

double fixed_loop_ms(int iterations) {
  const double start = now_ms();
  volatile uint32_t total = 0;  // volatile: the compiler would know the sum
  for (int i = 0; i < iterations; ++i) total = total + (static_cast<uint32_t>(i) & 7u);
  return now_ms() - start;
}

TimedRuns time_runs(int runs, const std::function<void()>& run, const std::function<void()>& tenth_done) {
  constexpr int kLoops = 8, kIterations = 200000, kTenths = 10;
  TimedRuns times;
  for (int tenth = 0; tenth <= kTenths; ++tenth) {
    for (int loop = 0; loop < kLoops; ++loop) times.loop_ms.push_back(fixed_loop_ms(kIterations));
    if (tenth == kTenths) break;
    const auto end = static_cast<size_t>(int64_t{runs} * (tenth + 1) / kTenths);
    while (times.run_ms.size() < end) {
      const double start = now_ms();
      run();
      times.run_ms.push_back(now_ms() - start);
    }
    if (tenth_done) tenth_done();
  }
  return times;
}

}  // namespace phonebit::engine::measure
