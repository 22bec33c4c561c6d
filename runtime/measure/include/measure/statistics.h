// Numbers of many runs, and a loop that shows whether the machine was disturbed meanwhile.
#pragma once

#include <functional>
#include <vector>

namespace phonebit::engine::measure {

/// Milliseconds of a clock that only goes forward.
double now_ms();

/// The value below which `share` (0 to 1) of the values lie, interpolated between neighbours as NumPy does.
/// There must be a value.
double quantile(std::vector<double> values, double share);

/// Milliseconds of a loop that always does the same: it slows down only if the machine does.
double fixed_loop_ms(int iterations);

/// Runs in order, and times of the fixed loop between them.
struct TimedRuns {
  std::vector<double> run_ms, loop_ms;

  /// 90th percentile over minimum of the loop: 1 on an undisturbed machine.
  double noise() const { return quantile(loop_ms, 0.9) / quantile(loop_ms, 0.0); }
  bool is_disturbed() const { return noise() > kMaxNoise; }
  static constexpr double kMaxNoise = 1.15;
};

/// Times `runs` calls one by one, with the fixed loop before each tenth of them and after the last.
TimedRuns time_runs(int runs, const std::function<void()>& run, const std::function<void()>& tenth_done = {});

}  // namespace phonebit::engine::measure
