// A layer that kernels are tested on: what the self-test makes a model of.
#pragma once

#include <cstdint>

#include "format/pbit_records.h"

namespace phonebit::engine::gpu {

/// Sizes that avoid multiples of tiles reach every edge of a kernel; where windows are one run of the map
/// (1x1, dense), K of floats should be below a chunk, or several chunks and a rest.
struct TestShape {
  struct Map {
    uint8_t height, width;
    uint16_t channels;
  };
  struct Window {
    uint8_t kernel_h, kernel_w, stride, dilation, pad;
    float pad_value;
  };
  /// What comes out.
  enum Output : uint8_t {
    kThresholds,       ///< bits by integer thresholds
    kEpilogue,         ///< values and bits, after steps
    kRoundedEpilogue,  ///< the same, the first step rounds
    kCopies,           ///< of the kind that the operands are
    kValues,           ///< floats
    kPlanes,           ///< all bits outputs that an operator can have
  };
  static constexpr Window kNoWindow = {0, 0, 1, 1, 0, 0.0f};

  const char* op;  ///< KernelFamily::op
  format::DataType dtype;
  Map operand;
  Window window;
  uint8_t groups, out_channels;
  Output output;
  int reach = 0;           ///< of thresholds
  float tolerance = 0.0f;  ///< of float results
};

}  // namespace phonebit::engine::gpu
