// Owners of OpenCL objects.
#pragma once

#include <utility>

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

}  // namespace phonebit::engine::opencl
