// Buffers of Vulkan.
#pragma once

#include <memory>

#include "gpu/device.h"
#include "vulkan/logical_device.h"

namespace phonebit::engine::vulkan {

/// A buffer with memory of its own.
class Buffer {
 public:
  enum class Place {
    device,   ///< the fastest for kernels
    unified,  ///< as fast, and the host reaches it
    host,     ///< the host reads it fast
  };
  /// Throws Error(device) naming `what` and the size.
  Buffer(std::shared_ptr<LogicalDevice> device, size_t bytes, Place place, const char* what);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  VkBuffer handle() const { return buffer_; }
  size_t bytes() const { return bytes_; }
  /// Where the host reaches it; null in Place::device.
  std::byte* host() const { return host_; }

 private:
  void allocate(Place place);

  std::shared_ptr<LogicalDevice> device_;
  size_t bytes_;
  VkBuffer buffer_{};
  VkDeviceMemory memory_{};
  std::byte* host_ = nullptr;
};

/// A buffer, or a part of one.
class Memory final : public gpu::DeviceMemory {
 public:
  Memory(std::shared_ptr<Buffer> buffer, size_t offset, size_t bytes)
      : buffer_(std::move(buffer)), offset_(offset), bytes_(bytes) {}

  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  size_t offset() const { return offset_; }
  size_t bytes() const { return bytes_; }
  std::byte* host() const { return buffer_->host() == nullptr ? nullptr : buffer_->host() + offset_; }

 private:
  std::shared_ptr<Buffer> buffer_;
  size_t offset_, bytes_;
};

inline const Memory& own(const gpu::DeviceMemory& memory) { return static_cast<const Memory&>(memory); }

}  // namespace phonebit::engine::vulkan
