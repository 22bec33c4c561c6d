// Vulkan devices of this machine.
#pragma once

#include <vector>

#include "gpu/device_facts.h"
#include "vulkan/vk_types.h"

namespace phonebit::engine::vulkan {

/// What kernels may use, as far as a device has it.
struct Features {
  VkBool32 has_int16;
  VkPhysicalDeviceVariablePointersFeatures variable_pointers;
  VkPhysicalDevice16BitStorageFeatures storage_16;
  VkPhysicalDevice8BitStorageFeatures storage_8;
  VkPhysicalDeviceShaderFloat16Int8Features arithmetic;
  std::vector<const char*> extensions;  ///< that some of them need
  /// The structures as a list for vkGetPhysicalDeviceFeatures2 and vkCreateDevice; they must stay where they are.
  void* chain();
};

/// A device with its facts, and what a logical device is made from.
struct PhysicalDevice : gpu::DeviceFacts {
  VkPhysicalDevice handle;
  uint32_t queue_family;         ///< that computes
  uint32_t timestamp_bits;       ///< that are valid; 0: the device has no clock
  double nanoseconds_per_tick;   ///< of the clock
  uint32_t max_group_counts[3];  ///< work-groups in a launch
  uint32_t max_push_bytes;       ///< of a kernel's numbers
  Features features;
  VkPhysicalDeviceMemoryProperties memory;
};

/// All devices of Vulkan 1.1 that compute: GPUs first, then others, each in the loader's order; found once. Empty
/// where there is no Vulkan or no device.
const std::vector<PhysicalDevice>& devices();

}  // namespace phonebit::engine::vulkan
