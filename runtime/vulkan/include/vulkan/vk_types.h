// Vulkan's types, constants and structures as far as the engine uses them, without its headers.
//
// Names, types and numbers are those of the Vulkan 1.1 specification; .ci/vulkan_headers compares them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace phonebit::engine::vulkan {

using VkFlags = uint32_t;
using VkBool32 = uint32_t;
using VkDeviceSize = uint64_t;
using VkResult = int32_t;
using VkStructureType = uint32_t;

using VkInstance = struct VkInstance_T*;
using VkPhysicalDevice = struct VkPhysicalDevice_T*;
using VkDevice = struct VkDevice_T*;
using VkQueue = struct VkQueue_T*;
using VkCommandBuffer = struct VkCommandBuffer_T*;
// Pointers on 64-bit machines, numbers of 64 bits on others.
#if UINTPTR_MAX > 0xFFFFFFFFu
#define PHONEBIT_VK_HANDLE(NAME) using NAME = struct NAME##_T*
#else
#define PHONEBIT_VK_HANDLE(NAME) using NAME = uint64_t
#endif
PHONEBIT_VK_HANDLE(VkBuffer);
PHONEBIT_VK_HANDLE(VkCommandPool);
PHONEBIT_VK_HANDLE(VkDescriptorPool);
PHONEBIT_VK_HANDLE(VkDescriptorSet);
PHONEBIT_VK_HANDLE(VkDescriptorSetLayout);
PHONEBIT_VK_HANDLE(VkDeviceMemory);
PHONEBIT_VK_HANDLE(VkFence);
PHONEBIT_VK_HANDLE(VkPipeline);
PHONEBIT_VK_HANDLE(VkPipelineCache);
PHONEBIT_VK_HANDLE(VkPipelineLayout);
PHONEBIT_VK_HANDLE(VkQueryPool);
PHONEBIT_VK_HANDLE(VkShaderModule);
#undef PHONEBIT_VK_HANDLE

inline constexpr VkResult VK_SUCCESS = 0;
inline constexpr uint32_t VK_API_VERSION_1_1 = 1u << 22 | 1u << 12;
inline constexpr uint64_t VK_WHOLE_SIZE = ~uint64_t{0};

inline constexpr VkStructureType VK_STRUCTURE_TYPE_APPLICATION_INFO = 0,
                                 VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO = 1,
                                 VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO = 2,
                                 VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO = 3, VK_STRUCTURE_TYPE_SUBMIT_INFO = 4,
                                 VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO = 5,
                                 VK_STRUCTURE_TYPE_FENCE_CREATE_INFO = 8,
                                 VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO = 11,
                                 VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO = 12,
                                 VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO = 16,
                                 VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO = 18,
                                 VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO = 29,
                                 VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO = 30,
                                 VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO = 32,
                                 VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO = 33,
                                 VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO = 34,
                                 VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET = 35,
                                 VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO = 39,
                                 VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO = 40,
                                 VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO = 42,
                                 VK_STRUCTURE_TYPE_MEMORY_BARRIER = 46,
                                 VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2 = 1000059000,
                                 VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2 = 1000059001,
                                 VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES = 1000168000,
                                 VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES = 1000082000,
                                 VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VARIABLE_POINTERS_FEATURES = 1000120000,
                                 VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES = 1000083000,
                                 VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES = 1000177000;

inline constexpr VkFlags VK_QUEUE_COMPUTE_BIT = 2;
inline constexpr VkFlags VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT = 1, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT = 2,
                         VK_MEMORY_PROPERTY_HOST_COHERENT_BIT = 4, VK_MEMORY_PROPERTY_HOST_CACHED_BIT = 8;
inline constexpr VkFlags VK_MEMORY_HEAP_DEVICE_LOCAL_BIT = 1;
inline constexpr VkFlags VK_BUFFER_USAGE_TRANSFER_SRC_BIT = 1, VK_BUFFER_USAGE_TRANSFER_DST_BIT = 2,
                         VK_BUFFER_USAGE_STORAGE_BUFFER_BIT = 32;
inline constexpr VkFlags VK_SHADER_STAGE_COMPUTE_BIT = 32;
inline constexpr VkFlags VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT = 0x800,
                         VK_PIPELINE_STAGE_TRANSFER_BIT = 0x1000,
                         VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT = 0x2000, VK_PIPELINE_STAGE_HOST_BIT = 0x4000;
inline constexpr VkFlags VK_ACCESS_SHADER_READ_BIT = 0x20, VK_ACCESS_SHADER_WRITE_BIT = 0x40,
                         VK_ACCESS_TRANSFER_READ_BIT = 0x800, VK_ACCESS_TRANSFER_WRITE_BIT = 0x1000,
                         VK_ACCESS_HOST_READ_BIT = 0x2000;
inline constexpr VkFlags VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT = 2;
inline constexpr VkFlags VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT = 1;
inline constexpr VkFlags VK_PIPELINE_CREATE_DISPATCH_BASE_BIT = 0x10;
inline constexpr VkFlags VK_QUERY_RESULT_64_BIT = 1, VK_QUERY_RESULT_WAIT_BIT = 2;
inline constexpr uint32_t VK_DESCRIPTOR_TYPE_STORAGE_BUFFER = 7, VK_PIPELINE_BIND_POINT_COMPUTE = 1,
                          VK_QUERY_TYPE_TIMESTAMP = 2, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU = 1,
                          VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU = 2, VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU = 3,
                          VK_PHYSICAL_DEVICE_TYPE_CPU = 4;

struct VkApplicationInfo {
  VkStructureType sType;
  const void* pNext;
  const char* pApplicationName;
  uint32_t applicationVersion;
  const char* pEngineName;
  uint32_t engineVersion, apiVersion;
};

struct VkInstanceCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  const VkApplicationInfo* pApplicationInfo;
  uint32_t enabledLayerCount;
  const char* const* ppEnabledLayerNames;
  uint32_t enabledExtensionCount;
  const char* const* ppEnabledExtensionNames;
};

struct VkExtensionProperties {
  char extensionName[256];
  uint32_t specVersion;
};

struct VkPhysicalDeviceFeatures {
  VkBool32 other[39];
  VkBool32 shaderFloat64, shaderInt64, shaderInt16;
  VkBool32 more[13];
};

struct VkPhysicalDeviceFeatures2 {
  VkStructureType sType;
  void* pNext;
  VkPhysicalDeviceFeatures features;
};

struct VkPhysicalDeviceVariablePointersFeatures {
  VkStructureType sType;
  void* pNext;
  VkBool32 variablePointersStorageBuffer, variablePointers;
};

struct VkPhysicalDeviceShaderFloat16Int8Features {
  VkStructureType sType;
  void* pNext;
  VkBool32 shaderFloat16, shaderInt8;
};

struct VkPhysicalDevice16BitStorageFeatures {
  VkStructureType sType;
  void* pNext;
  VkBool32 storageBuffer16BitAccess, uniformAndStorageBuffer16BitAccess, storagePushConstant16,
      storageInputOutput16;
};

struct VkPhysicalDevice8BitStorageFeatures {
  VkStructureType sType;
  void* pNext;
  VkBool32 storageBuffer8BitAccess, uniformAndStorageBuffer8BitAccess, storagePushConstant8;
};

struct VkPhysicalDeviceLimits {
  uint32_t maxImageDimensions[5];
  uint32_t maxTexelBufferElements, maxUniformBufferRange, maxStorageBufferRange, maxPushConstantsSize;
  uint32_t maxMemoryAllocationCount, maxSamplerAllocationCount;
  VkDeviceSize bufferImageGranularity, sparseAddressSpaceSize;
  uint32_t graphics[38];
  uint32_t maxComputeSharedMemorySize, maxComputeWorkGroupCount[3], maxComputeWorkGroupInvocations,
      maxComputeWorkGroupSize[3];
  uint32_t precision[3], draws[2];
  float samplers[2];
  uint32_t viewports[3];
  float viewportBoundsRange[2];
  uint32_t viewportSubPixelBits;
  size_t minMemoryMapAlignment;
  VkDeviceSize minTexelBufferOffsetAlignment, minUniformBufferOffsetAlignment,
      minStorageBufferOffsetAlignment;
  int32_t minTexelOffset;
  uint32_t maxTexelOffset;
  int32_t minTexelGatherOffset;
  uint32_t maxTexelGatherOffset;
  float interpolation[2];
  uint32_t framebuffers[15];
  VkBool32 timestampComputeAndGraphics;
  float timestampPeriod;
  uint32_t distances[4];
  float points[6];
  VkBool32 lines[2];
  VkDeviceSize optimalBufferCopyOffsetAlignment, optimalBufferCopyRowPitchAlignment, nonCoherentAtomSize;
};

struct VkPhysicalDeviceProperties {
  uint32_t apiVersion, driverVersion, vendorID, deviceID, deviceType;
  char deviceName[256];
  uint8_t pipelineCacheUUID[16];
  VkPhysicalDeviceLimits limits;
  VkBool32 sparseProperties[5];
};

struct VkPhysicalDeviceProperties2 {
  VkStructureType sType;
  void* pNext;
  VkPhysicalDeviceProperties properties;
};

struct VkPhysicalDeviceMaintenance3Properties {
  VkStructureType sType;
  void* pNext;
  uint32_t maxPerSetDescriptors;
  VkDeviceSize maxMemoryAllocationSize;
};

struct VkMemoryType {
  VkFlags propertyFlags;
  uint32_t heapIndex;
};

struct VkMemoryHeap {
  VkDeviceSize size;
  VkFlags flags;
};

struct VkPhysicalDeviceMemoryProperties {
  uint32_t memoryTypeCount;
  VkMemoryType memoryTypes[32];
  uint32_t memoryHeapCount;
  VkMemoryHeap memoryHeaps[16];
};

struct VkQueueFamilyProperties {
  VkFlags queueFlags;
  uint32_t queueCount, timestampValidBits, minImageTransferGranularity[3];
};

struct VkDeviceQueueCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t queueFamilyIndex, queueCount;
  const float* pQueuePriorities;
};

struct VkDeviceCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t queueCreateInfoCount;
  const VkDeviceQueueCreateInfo* pQueueCreateInfos;
  uint32_t enabledLayerCount;
  const char* const* ppEnabledLayerNames;
  uint32_t enabledExtensionCount;
  const char* const* ppEnabledExtensionNames;
  const VkPhysicalDeviceFeatures* pEnabledFeatures;
};

struct VkSubmitInfo {
  VkStructureType sType;
  const void* pNext;
  uint32_t waitSemaphoreCount;
  const void* pWaitSemaphores;
  const VkFlags* pWaitDstStageMask;
  uint32_t commandBufferCount;
  const VkCommandBuffer* pCommandBuffers;
  uint32_t signalSemaphoreCount;
  const void* pSignalSemaphores;
};

struct VkFenceCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
};

struct VkMemoryAllocateInfo {
  VkStructureType sType;
  const void* pNext;
  VkDeviceSize allocationSize;
  uint32_t memoryTypeIndex;
};

struct VkMemoryRequirements {
  VkDeviceSize size, alignment;
  uint32_t memoryTypeBits;
};

struct VkBufferCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  VkDeviceSize size;
  VkFlags usage;
  uint32_t sharingMode, queueFamilyIndexCount;
  const uint32_t* pQueueFamilyIndices;
};

struct VkShaderModuleCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  size_t codeSize;
  const uint32_t* pCode;
};

struct VkSpecializationMapEntry {
  uint32_t constantID, offset;
  size_t size;
};

struct VkSpecializationInfo {
  uint32_t mapEntryCount;
  const VkSpecializationMapEntry* pMapEntries;
  size_t dataSize;
  const void* pData;
};

struct VkPipelineShaderStageCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags, stage;
  VkShaderModule module;
  const char* pName;
  const VkSpecializationInfo* pSpecializationInfo;
};

struct VkComputePipelineCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  VkPipelineShaderStageCreateInfo stage;
  VkPipelineLayout layout;
  VkPipeline basePipelineHandle;
  int32_t basePipelineIndex;
};

struct VkPushConstantRange {
  VkFlags stageFlags;
  uint32_t offset, size;
};

struct VkPipelineLayoutCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t setLayoutCount;
  const VkDescriptorSetLayout* pSetLayouts;
  uint32_t pushConstantRangeCount;
  const VkPushConstantRange* pPushConstantRanges;
};

struct VkDescriptorSetLayoutBinding {
  uint32_t binding, descriptorType, descriptorCount;
  VkFlags stageFlags;
  const void* pImmutableSamplers;
};

struct VkDescriptorSetLayoutCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t bindingCount;
  const VkDescriptorSetLayoutBinding* pBindings;
};

struct VkDescriptorPoolSize {
  uint32_t type, descriptorCount;
};

struct VkDescriptorPoolCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t maxSets, poolSizeCount;
  const VkDescriptorPoolSize* pPoolSizes;
};

struct VkDescriptorSetAllocateInfo {
  VkStructureType sType;
  const void* pNext;
  VkDescriptorPool descriptorPool;
  uint32_t descriptorSetCount;
  const VkDescriptorSetLayout* pSetLayouts;
};

struct VkDescriptorBufferInfo {
  VkBuffer buffer;
  VkDeviceSize offset, range;
};

struct VkWriteDescriptorSet {
  VkStructureType sType;
  const void* pNext;
  VkDescriptorSet dstSet;
  uint32_t dstBinding, dstArrayElement, descriptorCount, descriptorType;
  const void* pImageInfo;
  const VkDescriptorBufferInfo* pBufferInfo;
  const void* pTexelBufferView;
};

struct VkCommandPoolCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t queueFamilyIndex;
};

struct VkCommandBufferAllocateInfo {
  VkStructureType sType;
  const void* pNext;
  VkCommandPool commandPool;
  uint32_t level, commandBufferCount;
};

struct VkCommandBufferBeginInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  const void* pInheritanceInfo;
};

struct VkMemoryBarrier {
  VkStructureType sType;
  const void* pNext;
  VkFlags srcAccessMask, dstAccessMask;
};

struct VkBufferCopy {
  VkDeviceSize srcOffset, dstOffset, size;
};

struct VkQueryPoolCreateInfo {
  VkStructureType sType;
  const void* pNext;
  VkFlags flags;
  uint32_t queryType, queryCount;
  VkFlags pipelineStatistics;
};

}  // namespace phonebit::engine::vulkan
