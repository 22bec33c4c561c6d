// Vulkan without its headers and without linking to it: the loader's library, opened at run time.
#pragma once

#include <string>

#include "vulkan/vk_types.h"

namespace phonebit::engine::vulkan {

using VoidFunction = void (*)();

// clang-format off
#define PHONEBIT_VK_INSTANCE_FUNCTIONS(X)                                                                    \
  X(VkResult, vkEnumeratePhysicalDevices, (VkInstance, uint32_t*, VkPhysicalDevice*))                        \
  X(void, vkGetPhysicalDeviceProperties2, (VkPhysicalDevice, VkPhysicalDeviceProperties2*))                  \
  X(void, vkGetPhysicalDeviceFeatures2, (VkPhysicalDevice, VkPhysicalDeviceFeatures2*))                      \
  X(void, vkGetPhysicalDeviceMemoryProperties, (VkPhysicalDevice, VkPhysicalDeviceMemoryProperties*))        \
  X(void, vkGetPhysicalDeviceQueueFamilyProperties,                                                          \
    (VkPhysicalDevice, uint32_t*, VkQueueFamilyProperties*))                                                 \
  X(VkResult, vkEnumerateDeviceExtensionProperties,                                                          \
    (VkPhysicalDevice, const char*, uint32_t*, VkExtensionProperties*))                                      \
  X(VkResult, vkCreateDevice, (VkPhysicalDevice, const VkDeviceCreateInfo*, const void*, VkDevice*))         \
  X(VoidFunction, vkGetDeviceProcAddr, (VkDevice, const char*))

#define PHONEBIT_VK_DEVICE_FUNCTIONS(X)                                                                      \
  X(void, vkDestroyDevice, (VkDevice, const void*))                                                          \
  X(void, vkGetDeviceQueue, (VkDevice, uint32_t, uint32_t, VkQueue*))                                        \
  X(VkResult, vkQueueSubmit, (VkQueue, uint32_t, const VkSubmitInfo*, VkFence))                              \
  X(VkResult, vkCreateFence, (VkDevice, const VkFenceCreateInfo*, const void*, VkFence*))                    \
  X(void, vkDestroyFence, (VkDevice, VkFence, const void*))                                                  \
  X(VkResult, vkResetFences, (VkDevice, uint32_t, const VkFence*))                                           \
  X(VkResult, vkGetFenceStatus, (VkDevice, VkFence))                                                         \
  X(VkResult, vkWaitForFences, (VkDevice, uint32_t, const VkFence*, VkBool32, uint64_t))                     \
  X(VkResult, vkAllocateMemory, (VkDevice, const VkMemoryAllocateInfo*, const void*, VkDeviceMemory*))       \
  X(void, vkFreeMemory, (VkDevice, VkDeviceMemory, const void*))                                             \
  X(VkResult, vkMapMemory, (VkDevice, VkDeviceMemory, VkDeviceSize, VkDeviceSize, VkFlags, void**))          \
  X(VkResult, vkCreateBuffer, (VkDevice, const VkBufferCreateInfo*, const void*, VkBuffer*))                 \
  X(void, vkDestroyBuffer, (VkDevice, VkBuffer, const void*))                                                \
  X(void, vkGetBufferMemoryRequirements, (VkDevice, VkBuffer, VkMemoryRequirements*))                        \
  X(VkResult, vkBindBufferMemory, (VkDevice, VkBuffer, VkDeviceMemory, VkDeviceSize))                        \
  X(VkResult, vkCreateShaderModule, (VkDevice, const VkShaderModuleCreateInfo*, const void*, VkShaderModule*)) \
  X(void, vkDestroyShaderModule, (VkDevice, VkShaderModule, const void*))                                    \
  X(VkResult, vkCreateComputePipelines,                                                                      \
    (VkDevice, VkPipelineCache, uint32_t, const VkComputePipelineCreateInfo*, const void*, VkPipeline*))     \
  X(void, vkDestroyPipeline, (VkDevice, VkPipeline, const void*))                                            \
  X(VkResult, vkCreatePipelineLayout,                                                                        \
    (VkDevice, const VkPipelineLayoutCreateInfo*, const void*, VkPipelineLayout*))                           \
  X(void, vkDestroyPipelineLayout, (VkDevice, VkPipelineLayout, const void*))                                \
  X(VkResult, vkCreateDescriptorSetLayout,                                                                   \
    (VkDevice, const VkDescriptorSetLayoutCreateInfo*, const void*, VkDescriptorSetLayout*))                 \
  X(void, vkDestroyDescriptorSetLayout, (VkDevice, VkDescriptorSetLayout, const void*))                      \
  X(VkResult, vkCreateDescriptorPool,                                                                        \
    (VkDevice, const VkDescriptorPoolCreateInfo*, const void*, VkDescriptorPool*))                           \
  X(void, vkDestroyDescriptorPool, (VkDevice, VkDescriptorPool, const void*))                                \
  X(VkResult, vkResetDescriptorPool, (VkDevice, VkDescriptorPool, VkFlags))                                  \
  X(VkResult, vkAllocateDescriptorSets,                                                                      \
    (VkDevice, const VkDescriptorSetAllocateInfo*, VkDescriptorSet*))                                        \
  X(void, vkUpdateDescriptorSets, (VkDevice, uint32_t, const VkWriteDescriptorSet*, uint32_t, const void*))  \
  X(VkResult, vkCreateCommandPool, (VkDevice, const VkCommandPoolCreateInfo*, const void*, VkCommandPool*))  \
  X(void, vkDestroyCommandPool, (VkDevice, VkCommandPool, const void*))                                      \
  X(VkResult, vkAllocateCommandBuffers, (VkDevice, const VkCommandBufferAllocateInfo*, VkCommandBuffer*))    \
  X(VkResult, vkBeginCommandBuffer, (VkCommandBuffer, const VkCommandBufferBeginInfo*))                      \
  X(VkResult, vkEndCommandBuffer, (VkCommandBuffer))                                                         \
  X(void, vkCmdBindPipeline, (VkCommandBuffer, uint32_t, VkPipeline))                                        \
  X(void, vkCmdBindDescriptorSets,                                                                           \
    (VkCommandBuffer, uint32_t, VkPipelineLayout, uint32_t, uint32_t, const VkDescriptorSet*, uint32_t,      \
     const uint32_t*))                                                                                       \
  X(void, vkCmdPushConstants, (VkCommandBuffer, VkPipelineLayout, VkFlags, uint32_t, uint32_t, const void*)) \
  X(void, vkCmdDispatchBase,                                                                                 \
    (VkCommandBuffer, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t))                           \
  X(void, vkCmdPipelineBarrier,                                                                              \
    (VkCommandBuffer, VkFlags, VkFlags, VkFlags, uint32_t, const VkMemoryBarrier*, uint32_t, const void*,    \
     uint32_t, const void*))                                                                                 \
  X(void, vkCmdCopyBuffer, (VkCommandBuffer, VkBuffer, VkBuffer, uint32_t, const VkBufferCopy*))             \
  X(VkResult, vkCreateQueryPool, (VkDevice, const VkQueryPoolCreateInfo*, const void*, VkQueryPool*))        \
  X(void, vkDestroyQueryPool, (VkDevice, VkQueryPool, const void*))                                          \
  X(void, vkCmdResetQueryPool, (VkCommandBuffer, VkQueryPool, uint32_t, uint32_t))                           \
  X(void, vkCmdWriteTimestamp, (VkCommandBuffer, VkFlags, VkQueryPool, uint32_t))                            \
  X(VkResult, vkGetQueryPoolResults,                                                                         \
    (VkDevice, VkQueryPool, uint32_t, uint32_t, size_t, void*, VkDeviceSize, VkFlags))
// clang-format on

#if defined(_WIN32) && !defined(_WIN64)
#define PHONEBIT_VK_CALL __stdcall
#else
#define PHONEBIT_VK_CALL
#endif
#define PHONEBIT_VK_FIELD(RESULT, NAME, PARAMETERS) RESULT(PHONEBIT_VK_CALL* NAME) PARAMETERS = nullptr;

/// Functions of the process's one instance of Vulkan 1.1.
struct InstanceApi {
  PHONEBIT_VK_INSTANCE_FUNCTIONS(PHONEBIT_VK_FIELD)
};

/// Functions of one device, without the loader's way through all drivers.
struct DeviceApi {
  PHONEBIT_VK_DEVICE_FUNCTIONS(PHONEBIT_VK_FIELD)
};
#undef PHONEBIT_VK_FIELD

struct Instance {
  VkInstance handle;
  InstanceApi functions;
};

/// Loads the library on first use: the one that PHONEBIT_VULKAN_LIBRARY names and no other (a name that does not
/// exist turns Vulkan off), else the usual names. The instance is never destroyed. Throws Error(device) saying what
/// was tried.
const Instance& instance();

/// Fills `functions`; throws Error(device) naming one that the driver lacks.
void resolve(VkDevice device, DeviceApi& functions);

/// "VK_ERROR_DEVICE_LOST" and the like; "VkResult -9999" for others.
std::string name_of_result(VkResult result);

/// Throws Error(device, "vkFoo: VK_ERROR_BAR (-5); <what>") for a negative result.
void check(VkResult result, const char* function, const char* what = "");

}  // namespace phonebit::engine::vulkan
