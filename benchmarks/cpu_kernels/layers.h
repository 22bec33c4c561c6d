// The layers that are measured, and one layer's data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel_types.h"

namespace bench {

struct Layer {
  std::string name;
  phonebit::engine::cpu::ConvShape shape;

  double macs() const;
  bool dense() const { return shape.out_h * shape.out_w == 1; }
};

/// Those of binary convolutions.
std::vector<Layer> layers();

/// Random input, weights and thresholds of a layer.
struct Problem {
  explicit Problem(const Layer& layer);

  std::vector<uint32_t> input, weights;
  std::vector<int32_t> thresholds;
};

}  // namespace bench
