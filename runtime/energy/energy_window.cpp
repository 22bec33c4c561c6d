#include "energy/energy_window.h"

#include <algorithm>

#include "types/fail.h"

namespace phonebit::engine::energy {
namespace {

/// How often a window that has its length is looked at.
constexpr double kCheckS = 0.25;

}  // namespace

Window measure_window(const Readings& readings, const WindowLimits& limits, const std::function<void()>& work,
                      const std::function<double()>& clock) {
  readings.start();
  const double begin = clock();
  double until = begin + limits.seconds;
  for (int64_t calls = 0;;) {
    while (clock() < until || calls == 0) {
      work();
      ++calls;
    }
    const Span span = readings.peek();
    check_goes_on(span, readings.source);
    if (span.uncertainty() <= limits.max_uncertainty || span.window_s >= limits.longest_s) {
      if (span.changes > 0 && span.energy_mj > 0.0) return {span, calls};
      fail(ErrorCode::device,
           "%s: the source shows nothing new (expected readings that change within %g s, got %zu changes, "
           "%g mJ); choose another source, or measure longer",
           readings.source.c_str(), limits.longest_s, span.changes, span.energy_mj);
    }
    until = std::min(clock() + kCheckS, begin + limits.longest_s);
  }
}

}  // namespace phonebit::engine::energy
