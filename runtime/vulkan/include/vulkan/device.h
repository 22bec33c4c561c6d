// A Vulkan device, as the GPU layer sees it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "gpu/device.h"
#include "vulkan/queue.h"

namespace phonebit::engine::vulkan {

class Device final : public gpu::Device {
 public:
  /// `physical` is one of devices().
  explicit Device(const PhysicalDevice& physical);

  const gpu::DeviceFacts& facts() const override { return device_->physical(); }
  std::unique_ptr<gpu::DeviceMemory> buffer(size_t bytes, const void* data, const char* what,
                                            Use use) const override;
  std::unique_ptr<gpu::DeviceMemory> image(size_t width, size_t height, const void* data,
                                           const char* what) const override;
  std::unique_ptr<gpu::DeviceMemory> borrow(const DeviceBuffer& buffer, size_t bytes,
                                            const char* tensor) const override;
  std::unique_ptr<gpu::DeviceMemory> part(const gpu::DeviceMemory& whole, size_t offset,
                                          size_t bytes) const override;
  bool has_program(const gpu::KernelChoice& choice) const override;
  std::unique_ptr<gpu::Program> compile(const gpu::ProgramSource& source) const override;
  std::unique_ptr<gpu::Program> load(const gpu::ProgramSource& source,
                                     const std::string& binary) const override;
  const std::string& build_options(gpu::Language) const override { return build_options_; }
  gpu::Queue& queue() override { return *queue_; }
  gpu::Queue& profiling_queue() override;
  std::unique_ptr<gpu::Queue> new_queue() const override { return std::make_unique<Queue>(device_, false); }
  std::unique_ptr<gpu::HostEvent> new_host_event() const override;
  std::unique_ptr<gpu::Recording> new_recording() override { return make_recording(device_, *queue_); }
  GpuHandles handles() const override { return {}; }

 private:
  std::shared_ptr<LogicalDevice> device_;
  std::string build_options_ = "SPIR-V";
  std::unique_ptr<Queue> queue_, profiling_queue_;
  std::mutex mutex_;  // of profiling_queue_
};

}  // namespace phonebit::engine::vulkan
