// Owners of OpenCL objects; memory and kernels as the GPU layer sees them.
#pragma once

#include <cstddef>
#include <utility>

#include "gpu/device.h"
#include "opencl/cl_api.h"

namespace phonebit::engine::opencl {

void release(cl_context) noexcept;
void release(cl_command_queue) noexcept;
void release(cl_mem) noexcept;
void release(cl_program) noexcept;
void release(cl_kernel) noexcept;
void release(cl_event) noexcept;
void retain(cl_context);
void retain(cl_command_queue);

/// Owns one reference. Move-only.
template <class T>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T owned) : object_(owned) {}
  ~Handle() {
    if (object_ != nullptr) release(object_);
  }
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  /// For functions that return the object through a pointer; only on an empty handle.
  T* out() { return &object_; }

 private:
  T object_ = nullptr;
};

/// A buffer, an image, or shared virtual memory.
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

class Kernel final : public gpu::Kernel {
 public:
  Kernel(Handle<cl_kernel> owned, cl_device_id device) : kernel_(std::move(owned)), device_(device) {}

  cl_kernel get() const { return kernel_.get(); }
  void bind(unsigned position, int value) override { set(position, sizeof value, &value); }
  void bind(unsigned position, const gpu::DeviceMemory& memory) override;
  size_t max_group_size() const override;

 private:
  void set(unsigned position, size_t bytes, const void* value);

  Handle<cl_kernel> kernel_;
  cl_device_id device_;
};

/// The objects of what one of OpenCL's devices has made.
inline cl_mem object_of(const gpu::DeviceMemory& memory) { return static_cast<const Memory&>(memory).get(); }
inline cl_kernel object_of(const gpu::Kernel& kernel) { return static_cast<const Kernel&>(kernel).get(); }

}  // namespace phonebit::engine::opencl
