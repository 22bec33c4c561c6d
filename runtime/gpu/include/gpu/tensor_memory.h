// Where the tensors of a model are, as kernels get to see them.
#pragma once

#include "gpu/device.h"

namespace phonebit::engine::gpu {

/// Image after image, NHWC, packed bits in whole words. Layers ask when they are bound.
class TensorMemory {
 public:
  /// Of a tensor that a layer on the device touches.
  virtual const DeviceMemory& memory(int tensor) const = 0;
  /// Whether a tensor of floats is stored as half.
  virtual bool is_half(int tensor) const = 0;
  /// Whether two tensors are the same memory.
  virtual bool is_shared(int a, int b) const = 0;

 protected:
  ~TensorMemory() = default;
};

}  // namespace phonebit::engine::gpu
