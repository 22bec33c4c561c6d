#include "vulkan/device.h"

#include <cstring>

#include "types/fail.h"
#include "vulkan/module_library.h"
#include "vulkan/program.h"

namespace phonebit::engine::vulkan {

Device::Device(const PhysicalDevice& physical)
    : device_(std::make_shared<LogicalDevice>(physical)), queue_(std::make_unique<Queue>(device_, false)) {}

std::unique_ptr<gpu::DeviceMemory> Device::buffer(size_t bytes, const void* data, const char* what,
                                                  Use use) const {
  if (use == Use::shared || use == Use::shared_with_atomics)
    fail(ErrorCode::device, "%s: %s has no memory that is coherent with the host", what,
         facts().name.c_str());
  const Buffer::Place place = facts().has_unified_memory ? Buffer::Place::unified
                              : use == Use::mapped       ? Buffer::Place::host
                                                         : Buffer::Place::device;
  auto made = std::make_shared<Buffer>(device_, bytes, place, what);
  auto memory = std::make_unique<Memory>(made, 0, made->bytes());
  if (data == nullptr || bytes == 0) return memory;
  if (made->host() != nullptr) {
    std::memcpy(made->host(), data, bytes);
    return memory;
  }
  Queue copier(device_, false);
  copier.write(*memory, gpu::Region::of_bytes(0, bytes), static_cast<const std::byte*>(data), true);
  copier.finish();
  return memory;
}

std::unique_ptr<gpu::DeviceMemory> Device::image(size_t, size_t, const void*, const char* what) const {
  fail(ErrorCode::device, "%s: the engine has no images on Vulkan", what);
}

std::unique_ptr<gpu::DeviceMemory> Device::borrow(const DeviceBuffer&, size_t, const char* tensor) const {
  fail(ErrorCode::input,
       "tensor '%s': a device buffer is OpenCL's, and the network is on a Vulkan device; pass arrays",
       tensor);
}

std::unique_ptr<gpu::DeviceMemory> Device::part(const gpu::DeviceMemory& whole, size_t offset,
                                                size_t bytes) const {
  const Memory& parent = own(whole);
  if (offset % facts().base_align_bytes != 0 || offset > parent.bytes() || bytes > parent.bytes() - offset)
    fail(ErrorCode::internal, "a part of %zu bytes at %zu of a buffer of %zu bytes", bytes, offset,
         parent.bytes());
  return std::make_unique<Memory>(parent.buffer(), parent.offset() + offset, bytes);
}

bool Device::has_program(const gpu::KernelChoice& choice) const { return module_library().has(choice); }

std::unique_ptr<gpu::Program> Device::compile(const gpu::ProgramSource& source) const {
  return std::make_unique<Program>(device_, module_library().program(source));
}

std::unique_ptr<gpu::Program> Device::load(const gpu::ProgramSource&, const std::string& binary) const {
  try {
    return std::make_unique<Program>(device_, binary);
  } catch (const Error&) {
    return nullptr;
  }
}

gpu::Queue& Device::profiling_queue() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!profiling_queue_) profiling_queue_ = std::make_unique<Queue>(device_, true);
  return *profiling_queue_;
}

std::unique_ptr<gpu::HostEvent> Device::new_host_event() const {
  fail(ErrorCode::device, "%s: commands of Vulkan do not wait for the host", facts().name.c_str());
}

}  // namespace phonebit::engine::vulkan
