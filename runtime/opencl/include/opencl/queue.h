// In-order queues of OpenCL and their events.
#pragma once

#include "gpu/device.h"
#include "opencl/handle.h"

namespace phonebit::engine::opencl {

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
  void wait_for(const gpu::HostEvent& event) override;
  void flush() override;
  void finish() override;

 private:
  void wait_for(cl_event event);

  Handle<cl_command_queue> queue_;
};

std::unique_ptr<gpu::HostEvent> new_host_event(cl_context context);

}  // namespace phonebit::engine::opencl
