// Whether the device is undisturbed: a layer whose time is known tells before and after a measurement, as in
// phonebit/planner/canary.py.
#pragma once

#include <phonebit/phonebit.h>

#include <functional>

#include "orders.h"

namespace phonebit::tools {

/// A layer that both processors compute a part of, again and again.
class Canary {
 public:
  /// `network` holds the layer that `order` names.
  Canary(Network network, const CanaryOrder& order)
      : network_(std::move(network)), order_(order), patience_s_(order.patience_s) {}

  /// The answer of a measurement of these parts before and after which their processors are undisturbed.
  /// `measure` is called again until they are, or patience is over: a device that stays slow is measured as
  /// it is.
  LayerTimes measure_quietly(const PartPair& parts, const std::function<LayerTimes()>& measure);

 private:
  /// Whether the layer takes as long now as it did at best, on the processors that have a part.
  bool is_quiet(const PartPair& parts);

  Network network_;
  CanaryOrder order_;
  double patience_s_;
  double least_cpu_us_ = 1e300, least_gpu_us_ = 1e300;
};

}  // namespace phonebit::tools
