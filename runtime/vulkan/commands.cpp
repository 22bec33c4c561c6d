#include "vulkan/commands.h"

#include <algorithm>
#include <cstring>

#include "types/fail.h"

namespace phonebit::engine::vulkan {
namespace {

constexpr uint32_t kSetsPerPool = 64, kBuffersPerSet = 16;
constexpr VkFlags kStages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;

/// Work-items of a group where the caller leaves it open: whole groups must fill the launch.
uint32_t dividing_size(size_t items) {
  uint32_t size = 64;
  while (items % size != 0) size /= 2;
  return size;
}

}  // namespace

Commands::Commands(std::shared_ptr<LogicalDevice> device, Kind kind)
    : device_(std::move(device)), api_(device_->api()), kind_(kind) {
  if (kind_ == Kind::timed_once && device_->physical().timestamp_bits == 0)
    fail(ErrorCode::device, "%s has no clock: layers cannot be timed", device_->physical().name.c_str());
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = device_->physical().queue_family;
  check(api_.vkCreateCommandPool(device_->handle(), &pool, nullptr, &pool_), "vkCreateCommandPool");
  VkCommandBufferAllocateInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  buffer.commandPool = pool_;
  buffer.commandBufferCount = 1;
  check(api_.vkAllocateCommandBuffers(device_->handle(), &buffer, &buffer_), "vkAllocateCommandBuffers");
  VkFenceCreateInfo fence{};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  check(api_.vkCreateFence(device_->handle(), &fence, nullptr, &fence_), "vkCreateFence");
  if (kind_ == Kind::timed_once) {
    VkQueryPoolCreateInfo queries{};
    queries.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queries.queryCount = kMaxTimes;
    check(api_.vkCreateQueryPool(device_->handle(), &queries, nullptr, &queries_), "vkCreateQueryPool");
  }
  begin();
}

Commands::~Commands() {
  try {
    if (state_ == State::submitted) wait();
  } catch (const Error&) {
    // The device is lost: nothing runs any more.
  }
  for (const VkDescriptorPool pool : set_pools_)
    api_.vkDestroyDescriptorPool(device_->handle(), pool, nullptr);
  api_.vkDestroyQueryPool(device_->handle(), queries_, nullptr);
  api_.vkDestroyFence(device_->handle(), fence_, nullptr);
  api_.vkDestroyCommandPool(device_->handle(), pool_, nullptr);
}

void Commands::begin() {
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = kind_ == Kind::replayed ? 0 : VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  check(api_.vkBeginCommandBuffer(buffer_, &info), "vkBeginCommandBuffer");
  if (kind_ == Kind::timed_once) api_.vkCmdResetQueryPool(buffer_, queries_, 0, kMaxTimes);
}

void Commands::order() {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                          VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  api_.vkCmdPipelineBarrier(buffer_, kStages, kStages, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

VkDescriptorSet Commands::new_set(VkDescriptorSetLayout layout) {
  if (sets_left_ == 0) {
    if (full_pools_ == set_pools_.size()) {
      const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kSetsPerPool * kBuffersPerSet};
      VkDescriptorPoolCreateInfo info{};
      info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
      info.maxSets = kSetsPerPool;
      info.poolSizeCount = 1;
      info.pPoolSizes = &size;
      VkDescriptorPool made{};
      check(api_.vkCreateDescriptorPool(device_->handle(), &info, nullptr, &made), "vkCreateDescriptorPool");
      set_pools_.push_back(made);
    }
    ++full_pools_;
    sets_left_ = kSetsPerPool;
  }
  --sets_left_;
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = set_pools_[full_pools_ - 1];
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  VkDescriptorSet made{};
  check(api_.vkAllocateDescriptorSets(device_->handle(), &info, &made), "vkAllocateDescriptorSets");
  return made;
}

void Commands::launch(const Kernel& kernel, const gpu::WorkSize& size) {
  Shader& shader = kernel.shader();
  const PhysicalDevice& physical = device_->physical();
  Shader::Size group = {1, 1, 1}, groups = {1, 1, 1};
  for (unsigned i = 0; i < size.dimensions; ++i) {
    group[i] = size.local != nullptr                ? static_cast<uint32_t>(size.local[i])
               : shader.module().group_size[0] != 0 ? shader.module().group_size[i]
               : i == 0                             ? dividing_size(size.global[0])
                                                    : 1;
    groups[i] = static_cast<uint32_t>(size.global[i] / group[i]);
    if (groups[i] == 0) return;
    if (i > 0 && groups[i] > physical.max_group_counts[i])
      fail(ErrorCode::device, "kernel %s: %u work-groups; %s launches at most %u in dimension %u",
           shader.module().kernel.c_str(), groups[i], physical.name.c_str(), physical.max_group_counts[i], i);
  }
  const VkPipeline pipeline = shader.pipeline(group);
  const VkDescriptorSet set = new_set(shader.set_layout());
  std::vector<VkWriteDescriptorSet> writes;
  for (size_t i = 0; i < kernel.buffers().size(); ++i) {
    const VkDescriptorBufferInfo& buffer = kernel.buffers()[i];
    if (buffer.buffer == VkBuffer{}) continue;  // the module does not use it
    VkWriteDescriptorSet write{};
    write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    write.dstSet = set;
    write.dstBinding = static_cast<uint32_t>(i);
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &buffer;
    writes.push_back(write);
  }
  api_.vkUpdateDescriptorSets(device_->handle(), static_cast<uint32_t>(writes.size()), writes.data(), 0,
                              nullptr);
  order();
  api_.vkCmdBindPipeline(buffer_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
  api_.vkCmdBindDescriptorSets(buffer_, VK_PIPELINE_BIND_POINT_COMPUTE, shader.layout(), 0, 1, &set, 0,
                               nullptr);
  if (!kernel.numbers().empty())
    api_.vkCmdPushConstants(buffer_, shader.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            static_cast<uint32_t>(kernel.numbers().size()), kernel.numbers().data());
  for (uint32_t first = 0; first < groups[0]; first += physical.max_group_counts[0])
    api_.vkCmdDispatchBase(buffer_, first, 0, 0, std::min(groups[0] - first, physical.max_group_counts[0]),
                           groups[1], groups[2]);
  keep(kernel.kept_shader());
}

void Commands::copy(const std::shared_ptr<Buffer>& from, const std::shared_ptr<Buffer>& to,
                    const std::vector<VkBufferCopy>& pieces) {
  order();
  api_.vkCmdCopyBuffer(buffer_, from->handle(), to->handle(), static_cast<uint32_t>(pieces.size()),
                       pieces.data());
  keep(from);
  keep(to);
}

uint32_t Commands::take_time() {
  order();
  api_.vkCmdWriteTimestamp(buffer_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, times_);
  return times_++;
}

void Commands::end() {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  api_.vkCmdPipelineBarrier(buffer_, kStages, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr, 0,
                            nullptr);
  check(api_.vkEndCommandBuffer(buffer_), "vkEndCommandBuffer");
}

void Commands::hand_over() {
  device_->submit(buffer_, fence_);
  state_ = State::submitted;
}

void Commands::submit() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_ != State::open) return;
  end();
  if (kind_ != Kind::replayed) {
    hand_over();
  } else {
    state_ = State::over;
  }
}

void Commands::replay() {
  wait();
  const std::lock_guard<std::mutex> lock(mutex_);
  check(api_.vkResetFences(device_->handle(), 1, &fence_), "vkResetFences");
  hand_over();
}

void Commands::end_of_wait() {
  state_ = State::over;
  for (const Delivery& delivery : deliveries_)
    scatter(delivery.staging->host(), delivery.region, delivery.host);
  deliveries_.clear();
  if (kind_ != Kind::replayed) used_.clear();
}

bool Commands::is_over() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_ == State::submitted && api_.vkGetFenceStatus(device_->handle(), fence_) == VK_SUCCESS)
    end_of_wait();
  return state_ == State::over;
}

void Commands::wait() {
  submit();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_ != State::submitted) return;
  const VkResult result = api_.vkWaitForFences(device_->handle(), 1, &fence_, 1, ~uint64_t{0});
  if (result < 0) state_ = State::over;  // nothing runs on a device that is lost
  check(result, "vkWaitForFences", device_->physical().name.c_str());
  end_of_wait();
}

uint64_t Commands::nanoseconds(uint32_t time) const {
  uint64_t ticks = 0;
  check(api_.vkGetQueryPoolResults(device_->handle(), queries_, time, 1, sizeof ticks, &ticks, sizeof ticks,
                                   VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
        "vkGetQueryPoolResults");
  return static_cast<uint64_t>(static_cast<double>(ticks) * device_->physical().nanoseconds_per_tick);
}

void Commands::reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  check(api_.vkResetFences(device_->handle(), 1, &fence_), "vkResetFences");
  for (const VkDescriptorPool pool : set_pools_)
    check(api_.vkResetDescriptorPool(device_->handle(), pool, 0), "vkResetDescriptorPool");
  full_pools_ = sets_left_ = times_ = 0;
  state_ = State::open;
  begin();
}

void gather(std::byte* dense, const gpu::Region& region, const std::byte* host) {
  for (size_t i = 0; i < region.runs; ++i)
    std::memcpy(dense + i * region.run_bytes, host + region.offset + i * region.pitch, region.run_bytes);
}

void scatter(const std::byte* dense, const gpu::Region& region, std::byte* host) {
  for (size_t i = 0; i < region.runs; ++i)
    std::memcpy(host + region.offset + i * region.pitch, dense + i * region.run_bytes, region.run_bytes);
}

}  // namespace phonebit::engine::vulkan
