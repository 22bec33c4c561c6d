// A logical device with its one queue, which all objects of it share.
#pragma once

#include <mutex>

#include "vulkan/physical_device.h"
#include "vulkan/vk_api.h"

namespace phonebit::engine::vulkan {

class LogicalDevice {
 public:
  explicit LogicalDevice(const PhysicalDevice& physical);
  ~LogicalDevice();
  LogicalDevice(const LogicalDevice&) = delete;
  LogicalDevice& operator=(const LogicalDevice&) = delete;

  const PhysicalDevice& physical() const { return physical_; }
  VkDevice handle() const { return handle_; }
  const DeviceApi& api() const { return api_; }
  /// Hands a command buffer to the device; `fence` tells its end. Thread-safe. Throws Error(device), also for
  /// a device that is lost.
  void submit(VkCommandBuffer commands, VkFence fence);
  /// Index of a memory type among `allowed` (bits) that has all of `wanted` and, where there is one, of
  /// `preferred`; -1: none.
  int memory_type(uint32_t allowed, VkFlags wanted, VkFlags preferred) const;

 private:
  const PhysicalDevice& physical_;
  VkDevice handle_ = nullptr;
  DeviceApi api_;
  VkQueue queue_ = nullptr;
  std::mutex mutex_;  // of queue_
};

}  // namespace phonebit::engine::vulkan
