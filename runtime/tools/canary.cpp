#include "canary.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "engine.h"
#include "statistics.h"

namespace phonebit::tools {

TimesBeside Canary::measure_beside(const PartPair& parts, const std::function<LayerTimes()>& measure) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  LayerTimes canary = layer_times();
  learn(canary);
  for (;;) {
    const bool is_patient = patience_s_ > 0;
    std::optional<LayerTimes> found;
    if (!is_patient || is_quiet(parts, canary)) found = measure();
    const LayerTimes before = std::exchange(canary, layer_times());
    const Clock::time_point end = Clock::now();
    const double seconds = std::chrono::duration<double>(end - begin).count();
    if (found && (!is_patient || is_quiet(parts, canary))) {
      patience_s_ = std::min<double>(patience_s_ + order_.waits_per_measurement * seconds, order_.patience_s);
      return {*found, std::sqrt(before.cpu_us * canary.cpu_us), std::sqrt(before.gpu_us * canary.gpu_us)};
    }
    patience_s_ -= seconds;
    begin = end;
  }
}

LayerTimes Canary::layer_times() {
  return checked(
      network_.measure_layer(order_.layer, &*order_.parts.cpu, &*order_.parts.gpu, order_.repeats));
}

void Canary::learn(const LayerTimes& times) {
  known_cpu_us_.push_back(times.cpu_us);
  known_gpu_us_.push_back(times.gpu_us);
}

bool Canary::is_quiet(const PartPair& parts, const LayerTimes& times) const {
  const double most = order_.most_percent / 100.0;
  return (!parts.cpu || times.cpu_us <= most * usual_us(known_cpu_us_)) &&
         (!parts.gpu || times.gpu_us <= most * usual_us(known_gpu_us_));
}

double Canary::usual_us(const std::vector<double>& known_us) const {
  return quantile(known_us, order_.usual_percent / 100.0);
}

}  // namespace phonebit::tools
