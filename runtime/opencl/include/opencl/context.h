// OpenCL devices of this machine, and one with its context and queues, created here or borrowed from the caller.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "opencl/objects.h"
#include "types/options.h"

namespace phonebit::engine::opencl {

/// A device with its facts.
struct ClDevice : gpu::DeviceFacts {
  cl_platform_id platform;
  cl_device_id id;
};

/// All devices of all platforms that have OpenCL 1.2 and a compiler: GPUs first, then others, simulators
/// last, each in the platforms' order; found once. Empty where there is no OpenCL or no device.
const std::vector<ClDevice>& devices();

/// Facts about any device, for handles that a caller brings along.
ClDevice describe_device(cl_device_id id);

/// What clCreateContext and clCreateCommandQueueWithProperties are told of a hint, by the extensions that the
/// device has: names and values, then 0. `flags`: of CL_QUEUE_PROPERTIES.
std::vector<intptr_t> context_properties(const ClDevice& device, Hint hint);
std::vector<cl_properties> queue_properties(const ClDevice& device, cl_bitfield flags, Hint hint);

class Queue final : public gpu::Queue {
 public:
  explicit Queue(Handle<cl_command_queue> owned) : queue_(std::move(owned)) {}

  cl_command_queue get() const { return queue_.get(); }

  void launch(const gpu::Kernel& kernel, const gpu::WorkSize& size, gpu::Events* events) override;
  void copy(const gpu::DeviceMemory& from, size_t from_offset, const gpu::DeviceMemory& to, size_t to_offset,
            size_t bytes) override;
  void copy_to_image(const gpu::DeviceMemory& from, const gpu::DeviceMemory& image, size_t width,
                     size_t first_row, size_t rows, gpu::Events* events) override;
  void write(const gpu::DeviceMemory& to, const gpu::Region& region, const std::byte* host,
             bool must_wait) override;
  void read(const gpu::DeviceMemory& from, const gpu::Region& region, std::byte* host, bool must_wait,
            gpu::Events* events) override;
  std::byte* map(const gpu::DeviceMemory& memory, MapUse use, size_t begin, size_t bytes, bool must_wait,
                 gpu::Events* events) override;
  void unmap(const gpu::DeviceMemory& memory, std::byte* address) override;
  void mark(gpu::Events& events) override;
  void wait_for(const gpu::Event& event) override;
  void flush() override;
  void finish() override;

 private:
  Handle<cl_command_queue> queue_;
};

class Context final : public gpu::Device {
 public:
  /// A new context on `device`, whose driver is told the hint where it can be.
  static std::shared_ptr<Context> create(const ClDevice& device, Hint hint = Hint::none);
  /// Retains the caller's objects. `queue` may be null: then one is created. Throws Error(input) for an
  /// out-of-order queue, or one of another context or device.
  static std::shared_ptr<Context> borrow(const GpuHandles& handles);

  cl_context get() const { return context_.get(); }
  const ClDevice& facts() const override { return device_; }

  std::unique_ptr<gpu::DeviceMemory> buffer(size_t bytes, const void* data, const char* what,
                                            Use use = Use::device) const override;
  std::unique_ptr<gpu::DeviceMemory> image(size_t width, size_t height, const void* data,
                                           const char* what) const override;
  std::unique_ptr<gpu::DeviceMemory> borrow(const DeviceBuffer& buffer, size_t bytes,
                                            const char* tensor) const override;
  std::unique_ptr<gpu::DeviceMemory> part(const gpu::DeviceMemory& whole, size_t offset,
                                          size_t bytes) const override;
  std::unique_ptr<gpu::Program> compile(const gpu::ProgramSource& source) const override;
  std::unique_ptr<gpu::Program> load(const gpu::ProgramSource& source,
                                     const std::string& binary) const override;
  const std::string& build_options(gpu::Language language) const override {
    return language == gpu::Language::core ? core_options_ : atomics_options_;
  }
  Queue& queue() override { return *queue_; }
  Queue& profiling_queue() override;
  std::unique_ptr<gpu::Queue> new_queue() const override;
  std::unique_ptr<gpu::HostEvent> new_host_event() const override;
  /// A command buffer (cl_khr_command_buffer) or recordings of an Adreno (cl_qcom_recordable_queues). Null where
  /// the device has neither or its driver refuses.
  std::unique_ptr<gpu::Recording> new_recording() override;
  GpuHandles handles() const override;

 private:
  Context(const ClDevice& device, Hint hint);
  Handle<cl_mem> create_buffer(cl_bitfield flags, size_t bytes, const void* data, const char* what) const;
  std::unique_ptr<gpu::DeviceMemory> shared_buffer(size_t bytes, const char* what, Use use) const;

  ClDevice device_;
  Hint hint_;
  std::string core_options_, atomics_options_;
  Handle<cl_context> context_;
  std::unique_ptr<Queue> queue_, profiling_queue_;
  std::mutex mutex_;  // of profiling_queue_
};

}  // namespace phonebit::engine::opencl
