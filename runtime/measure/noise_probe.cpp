#include "measure/noise_probe.h"

#include <algorithm>
#include <chrono>

#include "measure/statistics.h"

namespace phonebit::engine::measure {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void NoiseProbe::measure_in_turns(const Sides& sides, const std::function<SideTimes()>& turn, int turns,
                                  double seconds) {
  double begin = clock_();
  SideTimes minimum = turn();
  const auto take_turn = [&] {
    const SideTimes times = turn();
    for (size_t side = 0; side < minimum.size(); ++side) minimum[side] = std::min(minimum[side], times[side]);
  };
  for (int count = 1; count < turns || (count < limits_.max_turns && clock_() - begin < seconds); ++count)
    take_turn();
  learn(minimum);  // times while it waits would be many alike
  earn_wait(clock_() - begin);
  while (wait_s_ > 0.0 && !is_quiet(sides, minimum)) {
    begin = clock_();
    take_turn();
    wait_s_ -= clock_() - begin;
  }
}

void NoiseProbe::measure_quietly(const Sides& sides, const std::function<SideTimes()>& probe,
                                 const std::function<void()>& measure) {
  double begin = clock_();
  SideTimes times = probe();
  learn(times);
  for (;;) {
    const bool has_waited = wait_s_ <= 0.0;
    const bool is_measured = has_waited || is_quiet(sides, times);
    if (is_measured) measure();
    times = probe();
    const double now = clock_();
    if (is_measured && (has_waited || is_quiet(sides, times))) return earn_wait(now - begin);
    wait_s_ -= now - begin;
    begin = now;
  }
}

SideTimes NoiseProbe::usual_us() const {
  return {quantile(known_us_[0], limits_.usual_share), quantile(known_us_[1], limits_.usual_share)};
}

void NoiseProbe::learn(const SideTimes& probe_us) {
  for (size_t side = 0; side < probe_us.size(); ++side) known_us_[side].push_back(probe_us[side]);
}

bool NoiseProbe::is_quiet(const Sides& sides, const SideTimes& probe_us) const {
  const SideTimes usual = usual_us();
  for (size_t side = 0; side < sides.size(); ++side)
    if (sides[side] && probe_us[side] > limits_.tolerance * usual[side]) return false;
  return true;
}

void NoiseProbe::earn_wait(double seconds) {
  wait_s_ = std::min(wait_s_ + limits_.waits_per_measurement * seconds, limits_.max_wait_s);
}

}  // namespace phonebit::engine::measure
