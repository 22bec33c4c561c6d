// A device with its context and queues, created here or borrowed from the caller.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "opencl/device.h"
#include "opencl/handle.h"
#include "types/options.h"

namespace phonebit::engine::opencl {

/// What clCreateContext and clCreateCommandQueueWithProperties are told of a hint, by the extensions that the
/// device has: names and values, then 0. `flags`: of CL_QUEUE_PROPERTIES.
std::vector<intptr_t> context_properties(const Device& device, Hint hint);
std::vector<cl_properties> queue_properties(const Device& device, cl_bitfield flags, Hint hint);

/// In-order queues; thread-safe as OpenCL objects are. Shared by everything that works on the device.
class Context {
 public:
  /// A new context on `device`, whose driver is told the hint where it can be.
  static std::shared_ptr<Context> create(const Device& device, Hint hint = Hint::none);
  /// Retains the caller's objects. `queue` may be null: then one is created. Throws Error(input) for an
  /// out-of-order queue, or one of another context or device.
  static std::shared_ptr<Context> borrow(cl_context context, cl_device_id device, cl_command_queue queue);

  cl_context get() const { return context_.get(); }
  const Device& device() const { return device_; }
  cl_command_queue queue() const { return queue_.get(); }
  /// Another queue of the device.
  Handle<cl_command_queue> new_queue() const;
  /// A queue that records times of events, created on first use.
  cl_command_queue profiling_queue();

  /// A buffer of `bytes` (at least 1), filled from `data` where that is not null. Throws Error(device) naming
  /// `what` and the size when there is not enough memory, or more than max_buffer_bytes is asked for.
  Handle<cl_mem> buffer(size_t bytes, const void* data, const char* what) const;
  /// A buffer that the host maps without a copy where it shares memory with the device.
  Handle<cl_mem> host_accessible_buffer(size_t bytes, const char* what) const;
  /// A buffer over memory of the host, or shared virtual memory, that outlives it.
  Handle<cl_mem> buffer_over(void* memory, size_t bytes, const char* what) const;
  /// A part of a buffer; `offset` must be a multiple of device().base_align_bytes.
  Handle<cl_mem> sub_buffer(cl_mem parent, size_t offset, size_t bytes) const;
  /// image2d RGBA32UI (128 bits a texel), filled from `data` (row after row, dense) where that is not null.
  Handle<cl_mem> image(size_t width, size_t height, const void* data, const char* what) const;

 private:
  Context(Device device, Hint hint) : device_(std::move(device)), hint_(hint) {}
  Handle<cl_mem> create_buffer(cl_bitfield flags, size_t bytes, const void* data, const char* what) const;

  Device device_;
  Hint hint_;
  Handle<cl_context> context_;
  Handle<cl_command_queue> queue_, profiling_queue_;
  std::mutex mutex_;  // of profiling_queue_
};

}  // namespace phonebit::engine::opencl
