#include "vulkan/logical_device.h"

#include "types/fail.h"

namespace phonebit::engine::vulkan {

LogicalDevice::LogicalDevice(const PhysicalDevice& physical) : physical_(physical) {
  if (physical.features.variable_pointers.variablePointersStorageBuffer == 0)
    fail(ErrorCode::device,
         "%s, driver %s, lacks the feature variablePointersStorageBuffer, which kernels need",
         physical.name.c_str(), physical.driver_version.c_str());
  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = physical.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  Features features = physical.features;
  VkPhysicalDeviceFeatures core{};
  core.shaderInt16 = features.has_int16;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = features.chain();
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(features.extensions.size());
  info.ppEnabledExtensionNames = features.extensions.data();
  info.pEnabledFeatures = &core;
  check(instance().functions.vkCreateDevice(physical.handle, &info, nullptr, &handle_), "vkCreateDevice",
        physical.name.c_str());
  resolve(handle_, api_);
  api_.vkGetDeviceQueue(handle_, physical.queue_family, 0, &queue_);
}

LogicalDevice::~LogicalDevice() {
  if (api_.vkDestroyDevice != nullptr) api_.vkDestroyDevice(handle_, nullptr);
}

void LogicalDevice::submit(VkCommandBuffer commands, VkFence fence) {
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  const std::lock_guard<std::mutex> lock(mutex_);
  check(api_.vkQueueSubmit(queue_, 1, &info, fence), "vkQueueSubmit", physical_.name.c_str());
}

int LogicalDevice::memory_type(uint32_t allowed, VkFlags wanted, VkFlags preferred) const {
  int found = -1;
  for (uint32_t i = 0; i < physical_.memory.memoryTypeCount; ++i) {
    const VkFlags flags = physical_.memory.memoryTypes[i].propertyFlags;
    if ((allowed >> i & 1) == 0 || (flags & wanted) != wanted) continue;
    if ((flags & preferred) == preferred) return static_cast<int>(i);
    if (found < 0) found = static_cast<int>(i);
  }
  return found;
}

}  // namespace phonebit::engine::vulkan
