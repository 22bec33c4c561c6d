#include "vulkan/physical_device.h"

#include <algorithm>
#include <cstring>

#include "types/fail.h"
#include "vulkan/vk_api.h"

namespace phonebit::engine::vulkan {
namespace {

const InstanceApi& api() { return instance().functions; }

/// PCI numbers, and Khronos' own for those who have none.
const char* vendor_name(uint32_t id) {
  switch (id) {
    case 0x1002:
      return "AMD";
    case 0x1010:
      return "Imagination Technologies";
    case 0x106B:
      return "Apple";
    case 0x10DE:
      return "NVIDIA Corporation";
    case 0x13B5:
      return "ARM";
    case 0x5143:
      return "QUALCOMM";
    case 0x8086:
      return "Intel";
    case 0x10005:
      return "Mesa";
    default:
      return "unknown";
  }
}

std::string extensions_of(VkPhysicalDevice device) {
  uint32_t count = 0;
  if (api().vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr) < 0) return "";
  std::vector<VkExtensionProperties> found(count);
  if (api().vkEnumerateDeviceExtensionProperties(device, nullptr, &count, found.data()) < 0) return "";
  std::string names;
  for (const VkExtensionProperties& extension : found)
    names += (names.empty() ? "" : " ") + std::string(extension.extensionName);
  return names;
}

bool has_extension(const std::string& extensions, const std::string& name) {
  return (" " + extensions + " ").find(" " + name + " ") != std::string::npos;
}

/// False where no queue computes.
bool find_queue(PhysicalDevice& device) {
  uint32_t count = 0;
  api().vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api().vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    device.queue_family = i;
    device.timestamp_bits = families[i].timestampValidBits;
    return true;
  }
  return false;
}

void describe_memory(PhysicalDevice& device, uint32_t type, VkDeviceSize max_allocation) {
  api().vkGetPhysicalDeviceMemoryProperties(device.handle, &device.memory);
  for (uint32_t i = 0; i < device.memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = device.memory.memoryHeaps[i];
    if ((heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
      device.global_bytes = std::max(device.global_bytes, heap.size);
  }
  device.max_buffer_bytes = std::min<uint64_t>(device.max_buffer_bytes, max_allocation);
  device.has_unified_memory =
      type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU || type == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

void describe_features(PhysicalDevice& device) {
  Features& features = device.features;
  for (const char* const name : {"VK_KHR_8bit_storage", "VK_KHR_shader_float16_int8"})
    if (has_extension(device.extensions, name)) features.extensions.push_back(name);
  VkPhysicalDeviceFeatures2 all{};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  all.pNext = features.chain();
  api().vkGetPhysicalDeviceFeatures2(device.handle, &all);
  features.has_int16 = all.features.shaderInt16;
}

void describe_limits(PhysicalDevice& device, const VkPhysicalDeviceLimits& limits) {
  device.max_work_group_size =
      std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  device.base_align_bytes = static_cast<size_t>(limits.minStorageBufferOffsetAlignment);
  device.max_buffer_bytes = limits.maxStorageBufferRange;
  device.local_bytes = limits.maxComputeSharedMemorySize;
  device.max_push_bytes = limits.maxPushConstantsSize;
  device.nanoseconds_per_tick = limits.timestampPeriod;
  std::copy_n(limits.maxComputeWorkGroupCount, 3, device.max_group_counts);
}

/// False for a device that the engine cannot use.
bool describe(VkPhysicalDevice handle, PhysicalDevice& device) {
  device.api = "vulkan";
  device.handle = handle;
  VkPhysicalDeviceMaintenance3Properties maintenance{};
  maintenance.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  VkPhysicalDeviceProperties2 all{};
  all.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  all.pNext = &maintenance;
  api().vkGetPhysicalDeviceProperties2(handle, &all);
  const VkPhysicalDeviceProperties& properties = all.properties;
  if (properties.apiVersion < VK_API_VERSION_1_1 || !find_queue(device)) return false;

  device.name = properties.deviceName;
  device.vendor_name = vendor_name(properties.vendorID);
  device.platform_name = "Vulkan";
  device.version = format_text("Vulkan %u.%u.%u", properties.apiVersion >> 22 & 0x7F,
                               properties.apiVersion >> 12 & 0x3FF, properties.apiVersion & 0xFFF);
  device.driver_version = format_text("%u", properties.driverVersion);
  device.extensions = extensions_of(handle);
  const uint32_t type = properties.deviceType;
  device.is_gpu = type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
                  type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU || type == VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU;
  describe_limits(device, properties.limits);
  describe_features(device);
  describe_memory(device, type, maintenance.maxMemoryAllocationSize);
  device.vendor = gpu::vendor_of(device);
  device.family = gpu::family_of(device, 0);
  device.takes_modules = true;
  device.has_fma = true;  // the self-test finds where it is not one operation
  device.has_overlapping_parts = true;
  device.has_command_buffer = true;
  return true;
}

std::vector<PhysicalDevice> find_devices() {
  uint32_t count = 0;
  std::vector<VkPhysicalDevice> handles;
  try {
    check(api().vkEnumeratePhysicalDevices(instance().handle, &count, nullptr), "vkEnumeratePhysicalDevices");
    handles.resize(count);
    check(api().vkEnumeratePhysicalDevices(instance().handle, &count, handles.data()),
          "vkEnumeratePhysicalDevices");
  } catch (const Error&) {
    return {};  // no Vulkan
  }
  std::vector<PhysicalDevice> gpus, others;
  for (const VkPhysicalDevice handle : handles) {
    PhysicalDevice device{};
    if (describe(handle, device)) (device.is_gpu ? gpus : others).push_back(std::move(device));
  }
  for (PhysicalDevice& device : others) gpus.push_back(std::move(device));
  return gpus;
}

}  // namespace

void* Features::chain() {
  variable_pointers.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VARIABLE_POINTERS_FEATURES;
  variable_pointers.pNext = &storage_16;
  storage_16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  storage_16.pNext = nullptr;
  storage_8.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES;
  arithmetic.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
  for (const std::string name : extensions) {
    if (name == "VK_KHR_8bit_storage") {
      storage_8.pNext = storage_16.pNext;
      storage_16.pNext = &storage_8;
    } else {
      arithmetic.pNext = storage_16.pNext;
      storage_16.pNext = &arithmetic;
    }
  }
  return &variable_pointers;
}

const std::vector<PhysicalDevice>& devices() {
  static const std::vector<PhysicalDevice> found = find_devices();
  return found;
}

}  // namespace phonebit::engine::vulkan
