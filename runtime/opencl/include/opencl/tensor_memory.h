// Where the tensors of a model are, as kernels get to see them.
#pragma once

#include "opencl/cl_api.h"

namespace phonebit::engine::opencl {

/// A tensor's memory. Commands that copy use `buffer`; kernels get `svm` where it is not null: then `buffer`
/// lies over the same shared virtual memory.
struct DeviceMemory {
  cl_mem buffer = nullptr;
  void* svm = nullptr;
};

/// Image after image, NHWC, packed bits in whole words. Layers ask when they are bound.
class TensorMemory {
 public:
  virtual DeviceMemory memory(int tensor) const = 0;
  /// Whether a tensor of floats is stored as half.
  virtual bool is_half(int tensor) const = 0;
  /// Whether two tensors are the same memory.
  virtual bool is_shared(int a, int b) const = 0;

 protected:
  ~TensorMemory() = default;
};

}  // namespace phonebit::engine::opencl
