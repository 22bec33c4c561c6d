// A command buffer with all that its commands use.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "gpu/device.h"
#include "vulkan/logical_device.h"
#include "vulkan/memory.h"
#include "vulkan/program.h"

namespace phonebit::engine::vulkan {

/// Each command begins when all before it, also those of earlier command buffers of the device, are over and what
/// they wrote can be read. Thread-safe.
class Commands {
 public:
  enum class Kind { once, timed_once, replayed };

  Commands(std::shared_ptr<LogicalDevice> device, Kind kind);
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  /// Calls body(*this) if commands can still be added; else returns false.
  template <class Body>
  bool record(const Body& body) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (state_ != State::open) return false;
    body(*this);
    return true;
  }
  Kind kind() const { return kind_; }
  // Within record():
  void launch(const Kernel& kernel, const gpu::WorkSize& size);
  void copy(const std::shared_ptr<Buffer>& from, const std::shared_ptr<Buffer>& to,
            const std::vector<VkBufferCopy>& pieces);
  /// When the commands are over, `region` of `staging` goes to the same place of `host`.
  void deliver(std::shared_ptr<Buffer> staging, const gpu::Region& region, std::byte* host) {
    deliveries_.push_back({std::move(staging), region, host});
  }
  void keep(std::shared_ptr<void> used) { used_.push_back(std::move(used)); }
  /// Number of a time that the device takes here; only of timed_once.
  uint32_t take_time();
  bool has_room_for_times() const { return times_ + 2 <= kMaxTimes; }

  /// No commands are added any more; hands them to the device where that was not done.
  void submit();
  /// Hands the commands of Kind::replayed to the device once more.
  void replay();
  /// Whether they are over; does not wait. False before they are handed over.
  bool is_over();
  /// submit(), then until they are over and their deliveries are made.
  void wait();
  /// Nanoseconds at a time that was taken; the commands are over.
  uint64_t nanoseconds(uint32_t time) const;
  /// Makes them new; nobody else holds them, and they are over.
  void reset();

 private:
  enum class State { open, submitted, over };
  static constexpr uint32_t kMaxTimes = 512;
  struct Delivery {
    std::shared_ptr<Buffer> staging;
    gpu::Region region;
    std::byte* host;
  };

  void begin();
  void end();
  void hand_over();
  void end_of_wait();
  void order();
  VkDescriptorSet new_set(VkDescriptorSetLayout layout);

  std::shared_ptr<LogicalDevice> device_;
  const DeviceApi& api_;
  const Kind kind_;
  mutable std::mutex mutex_;
  State state_ = State::open;
  VkCommandPool pool_{};
  VkCommandBuffer buffer_ = nullptr;
  VkFence fence_{};
  VkQueryPool queries_{};
  uint32_t times_ = 0;
  std::vector<VkDescriptorPool> set_pools_;
  size_t full_pools_ = 0;
  uint32_t sets_left_ = 0;
  std::vector<std::shared_ptr<void>> used_;
  std::vector<Delivery> deliveries_;
};

/// Bytes of a region between host memory and a dense copy of it.
void gather(std::byte* dense, const gpu::Region& region, const std::byte* host);
void scatter(const std::byte* dense, const gpu::Region& region, std::byte* host);

}  // namespace phonebit::engine::vulkan
