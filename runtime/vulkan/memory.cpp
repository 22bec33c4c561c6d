#include "vulkan/memory.h"

#include <algorithm>

#include "types/fail.h"

namespace phonebit::engine::vulkan {
namespace {

/// Commands copy whole words.
size_t whole_words(size_t bytes) { return (std::max<size_t>(bytes, 1) + 3) / 4 * 4; }

}  // namespace

Buffer::Buffer(std::shared_ptr<LogicalDevice> device, size_t bytes, Place place, const char* what)
    : device_(std::move(device)), bytes_(whole_words(bytes)) {
  const PhysicalDevice& physical = device_->physical();
  if (bytes > physical.max_buffer_bytes)
    fail(ErrorCode::device, "%s: a buffer of %zu bytes is too large for %s, which allows %llu", what, bytes,
         physical.name.c_str(), static_cast<unsigned long long>(physical.max_buffer_bytes));
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes_;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  const std::string text = format_text("%s: %zu bytes", what, bytes);
  check(device_->api().vkCreateBuffer(device_->handle(), &info, nullptr, &buffer_), "vkCreateBuffer",
        text.c_str());
  try {
    allocate(place);
  } catch (const Error& error) {
    device_->api().vkFreeMemory(device_->handle(), memory_, nullptr);
    device_->api().vkDestroyBuffer(device_->handle(), buffer_, nullptr);
    fail(ErrorCode::device, "%s; %s", error.what(), text.c_str());
  }
}

void Buffer::allocate(Place place) {
  const DeviceApi& api = device_->api();
  constexpr VkFlags kMapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  VkMemoryRequirements needs{};
  api.vkGetBufferMemoryRequirements(device_->handle(), buffer_, &needs);
  const VkFlags wanted = place == Place::device ? 0 : kMapped;
  const VkFlags preferred = place == Place::device ? VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
                            : place == Place::unified
                                ? VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT
                                : VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  const int type = device_->memory_type(needs.memoryTypeBits, wanted, preferred);
  if (type < 0) fail(ErrorCode::device, "%s has no such memory", device_->physical().name.c_str());
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.allocationSize = needs.size;
  info.memoryTypeIndex = static_cast<uint32_t>(type);
  check(api.vkAllocateMemory(device_->handle(), &info, nullptr, &memory_), "vkAllocateMemory");
  check(api.vkBindBufferMemory(device_->handle(), buffer_, memory_, 0), "vkBindBufferMemory");
  if (place == Place::device) return;
  void* address = nullptr;
  check(api.vkMapMemory(device_->handle(), memory_, 0, VK_WHOLE_SIZE, 0, &address), "vkMapMemory");
  host_ = static_cast<std::byte*>(address);
}

Buffer::~Buffer() {
  device_->api().vkDestroyBuffer(device_->handle(), buffer_, nullptr);
  device_->api().vkFreeMemory(device_->handle(), memory_, nullptr);
}

}  // namespace phonebit::engine::vulkan
