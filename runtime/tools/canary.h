// Whether the device is undisturbed: a layer whose time is known tells between measurements, as in
// phonebit/planner/measure/measuring.py.
#pragma once

#include <phonebit/phonebit.h>

#include <functional>
#include <vector>

#include "orders.h"

namespace phonebit::tools {

/// The least times of an order's measurements, and those of the canary meanwhile.
struct TurnTimes {
  LayerTimes canary;
  std::vector<LayerTimes> pairs;
};

/// A layer that both processors compute a part of, again and again.
class Canary {
 public:
  /// `network` holds the layer that `order` names.
  Canary(Network network, const CanaryOrder& order)
      : network_(std::move(network)), order_(order), patience_s_(order.patience_s) {}

  /// Everything has its turn before anything has its next one, the canary first: what disturbs for
  /// milliseconds spoils a turn of some. There are more turns while the canary has not once been undisturbed,
  /// until patience is over.
  TurnTimes measure_in_turns(const std::vector<PartPair>& pairs, int turns,
                             const std::function<LayerTimes(const PartPair&)>& measure);

 private:
  LayerTimes layer_times();
  /// Whether the layer took as long as usual on the processors that have a part.
  bool is_quiet(const std::vector<PartPair>& pairs, const LayerTimes& times) const;
  double usual_us(const std::vector<double>& known_us) const;

  Network network_;
  CanaryOrder order_;
  double patience_s_;
  std::vector<double> known_cpu_us_, known_gpu_us_;
};

}  // namespace phonebit::tools
