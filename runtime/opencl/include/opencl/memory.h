// Buffers and images of OpenCL, and shared virtual memory.
#pragma once

#include <cstddef>

#include "gpu/device.h"
#include "opencl/handle.h"

namespace phonebit::engine::opencl {

class Memory final : public gpu::DeviceMemory {
 public:
  /// Owns the object.
  explicit Memory(Handle<cl_mem> owned) : owned_(std::move(owned)), object_(owned_.get()) {}
  /// A caller's object.
  explicit Memory(cl_mem borrowed) : object_(borrowed) {}
  /// Fine-grained shared virtual memory of OpenCL 2.0, which it owns; the context outlives it.
  Memory(cl_context context, void* shared) : object_(nullptr), context_(context), shared_(shared) {}
  ~Memory() override;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* address() const override { return static_cast<std::byte*>(shared_); }
  /// For commands that copy; null: none was put over shared memory.
  cl_mem get() const { return object_; }
  void put_over(Handle<cl_mem> buffer) {
    owned_ = std::move(buffer);
    object_ = owned_.get();
  }

 private:
  Handle<cl_mem> owned_;
  cl_mem object_;
  cl_context context_ = nullptr;
  void* shared_ = nullptr;  // as kernels get it
};

/// The object of memory that one of OpenCL's devices has made.
inline cl_mem object_of(const gpu::DeviceMemory& memory) { return static_cast<const Memory&>(memory).get(); }

}  // namespace phonebit::engine::opencl
