// Shared virtual memory: one address for host and device.
#pragma once

#include <cstddef>

#include "opencl/context.h"

namespace phonebit::engine::opencl {

/// Fine-grained memory of OpenCL 2.0: both sides read and write it without commands between them, and, where
/// it is made for atomics, while the other one runs. The context must outlive it, and so must every command.
class SvmMemory {
 public:
  enum Use { data_only, with_atomics };
  /// At least `bytes`, aligned to 64. Throws Error(device) where the device has none, or not for this use.
  SvmMemory(const Context& context, size_t bytes, const char* what, Use use = data_only);
  ~SvmMemory();
  SvmMemory(const SvmMemory&) = delete;
  SvmMemory& operator=(const SvmMemory&) = delete;

  void* data() const { return data_; }

 private:
  cl_context context_;
  void* data_;
};

}  // namespace phonebit::engine::opencl
