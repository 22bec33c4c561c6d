// Whether the device is undisturbed: a layer whose time is known tells before and after a measurement, as in
// phonebit/planner/canary.py.
#pragma once

#include <phonebit/phonebit.h>

#include <functional>
#include <vector>

#include "orders.h"

namespace phonebit::tools {

/// A measurement, and what the canary took around it: the mean of before and after.
struct TimesBeside {
  LayerTimes found;
  double canary_cpu_us, canary_gpu_us;
};

/// A layer that both processors compute a part of, again and again.
class Canary {
 public:
  /// `network` holds the layer that `order` names.
  Canary(Network network, const CanaryOrder& order)
      : network_(std::move(network)), order_(order), patience_s_(order.patience_s) {}

  /// A measurement of these parts before and after which their processors are undisturbed. `measure` is
  /// called again until they are, or patience is over.
  TimesBeside measure_beside(const PartPair& parts, const std::function<LayerTimes()>& measure);

 private:
  LayerTimes layer_times();
  /// Keeps times from before a measurement; of those while it waits there are many alike.
  void learn(const LayerTimes& times);
  /// Whether the layer took as long as usual, on the processors that have a part.
  bool is_quiet(const PartPair& parts, const LayerTimes& times) const;
  double usual_us(const std::vector<double>& known_us) const;

  Network network_;
  CanaryOrder order_;
  double patience_s_;
  std::vector<double> known_cpu_us_, known_gpu_us_;
};

}  // namespace phonebit::tools
