#include "canary.h"

#include <algorithm>
#include <chrono>

#include "engine.h"

namespace phonebit::tools {

LayerTimes Canary::measure_quietly(const PartPair& parts, const std::function<LayerTimes()>& measure) {
  for (;;) {
    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [begin] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    const bool is_patient = patience_s_ > 0;
    if (is_quiet(parts) || !is_patient) {
      const LayerTimes times = measure();
      if (!is_patient || is_quiet(parts)) {
        patience_s_ =
            std::min<double>(patience_s_ + order_.waits_per_measurement * seconds(), order_.patience_s);
        return times;
      }
    }
    patience_s_ -= seconds();
  }
}

bool Canary::is_quiet(const PartPair& parts) {
  const LayerTimes times =
      checked(network_.measure_layer(order_.layer, &*order_.parts.cpu, &*order_.parts.gpu, 1));
  least_cpu_us_ = std::min(least_cpu_us_, times.cpu_us);
  least_gpu_us_ = std::min(least_gpu_us_, times.gpu_us);
  const double most = order_.most_percent / 100.0;
  return (!parts.cpu || times.cpu_us <= most * least_cpu_us_) &&
         (!parts.gpu || times.gpu_us <= most * least_gpu_us_);
}

}  // namespace phonebit::tools
