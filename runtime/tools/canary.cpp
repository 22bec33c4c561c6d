#include "canary.h"

#include <algorithm>
#include <chrono>

#include "engine.h"
#include "statistics.h"

namespace phonebit::tools {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void keep_least(LayerTimes& least, const LayerTimes& other) {
  least.total_us = std::min(least.total_us, other.total_us);
  least.cpu_us = std::min(least.cpu_us, other.cpu_us);
  least.gpu_us = std::min(least.gpu_us, other.gpu_us);
}

}  // namespace

TurnTimes Canary::measure_in_turns(const std::vector<PartPair>& pairs, int turns,
                                   const std::function<LayerTimes(const PartPair&)>& measure) {
  Clock::time_point begin = Clock::now();
  TurnTimes least{layer_times(), {}};
  for (const PartPair& pair : pairs) least.pairs.push_back(measure(pair));
  const auto take_turn = [&] {
    keep_least(least.canary, layer_times());
    for (size_t i = 0; i < pairs.size(); ++i) keep_least(least.pairs[i], measure(pairs[i]));
  };
  for (int turn = 1; turn < turns; ++turn) take_turn();
  known_cpu_us_.push_back(least.canary.cpu_us);
  known_gpu_us_.push_back(least.canary.gpu_us);
  const double restored_s = patience_s_ + order_.waits_per_measurement * seconds_since(begin);
  patience_s_ = std::min<double>(restored_s, order_.patience_s);
  while (patience_s_ > 0 && !is_quiet(pairs, least.canary)) {
    begin = Clock::now();
    take_turn();
    patience_s_ -= seconds_since(begin);
  }
  return least;
}

LayerTimes Canary::layer_times() {
  return checked(
      network_.measure_layer(order_.layer, &*order_.parts.cpu, &*order_.parts.gpu, order_.repeats));
}

bool Canary::is_quiet(const std::vector<PartPair>& pairs, const LayerTimes& times) const {
  const double most = order_.most_percent / 100.0;
  const auto has_cpu = [](const PartPair& pair) { return pair.cpu.has_value(); };
  const auto has_gpu = [](const PartPair& pair) { return pair.gpu.has_value(); };
  return (times.cpu_us <= most * usual_us(known_cpu_us_) ||
          std::none_of(pairs.begin(), pairs.end(), has_cpu)) &&
         (times.gpu_us <= most * usual_us(known_gpu_us_) ||
          std::none_of(pairs.begin(), pairs.end(), has_gpu));
}

double Canary::usual_us(const std::vector<double>& known_us) const {
  return quantile(known_us, order_.usual_percent / 100.0);
}

}  // namespace phonebit::tools
