// Measuring on a machine that other work disturbs: a probe of known time tells when it does.
#pragma once

#include <array>
#include <functional>
#include <vector>

namespace phonebit::engine::measure {

/// Of a CPU and a GPU.
using SideTimes = std::array<double, 2>;  // microseconds
using Sides = std::array<bool, 2>;

/// Seconds of a clock that only goes forward.
double now_s();

struct NoiseLimits {
  double usual_share;            ///< the share of measurements that find the probe at most as slow as usual
  double tolerance;              ///< a probe is disturbed above so many times its usual time
  double max_wait_s;             ///< how long a measurement waits until it is not, at most
  double waits_per_measurement;  ///< all together wait at most so many times as long as they take
  int max_turns;                 ///< of a measurement that goes on for a given time
};

/// Interleaves measurements with a probe, a layer of which both processors compute a part, and repeats them
/// while the probe takes longer than usual.
///
/// Everything has its turn before anything has its next one, the probe first, so that a short disturbance
/// affects one turn only. Where a core is slow for half of the time, few turns are without a quick one.
class NoiseProbe {
 public:
  explicit NoiseProbe(const NoiseLimits& limits, std::function<double()> clock = now_s)
      : limits_(limits), clock_(std::move(clock)), wait_s_(limits.max_wait_s) {}

  /// Calls `turn`, which runs the probe and then everything that is measured, and returns the probe's times:
  /// `turns` times and for `seconds`, then until the smallest times of the probe are as usual on the processors
  /// in `sides`, or the wait is over.
  void measure_in_turns(const Sides& sides, const std::function<SideTimes()>& turn, int turns,
                        double seconds);

  /// Calls `measure` between two undisturbed runs of the probe; again until they are, or the wait is over. The
  /// last call counts.
  void measure_quietly(const Sides& sides, const std::function<SideTimes()>& probe,
                       const std::function<void()>& measure);

  /// What the probe usually takes, by its times in all measurements; there must have been one.
  SideTimes usual_us() const;

 private:
  void learn(const SideTimes& probe_us);
  bool is_quiet(const Sides& sides, const SideTimes& probe_us) const;
  /// A measurement earns waiting for the next ones.
  void earn_wait(double seconds);

  NoiseLimits limits_;
  std::function<double()> clock_;
  double wait_s_;  // left
  std::array<std::vector<double>, 2> known_us_;
};

}  // namespace phonebit::engine::measure
