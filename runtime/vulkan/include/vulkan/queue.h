// In-order queues, all of which hand their commands to the device's one queue.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "gpu/device.h"
#include "vulkan/commands.h"

namespace phonebit::engine::vulkan {

class Queue final : public gpu::Queue {
 public:
  Queue(std::shared_ptr<LogicalDevice> device, bool takes_times)
      : device_(std::move(device)), kind_(takes_times ? Commands::Kind::timed_once : Commands::Kind::once) {}
  ~Queue() override;

  void launch(const gpu::Kernel& kernel, const gpu::WorkSize& size, gpu::Events* events) override;
  void copy(const gpu::DeviceMemory& from, size_t from_offset, const gpu::DeviceMemory& to, size_t to_offset,
            size_t bytes) override;
  void copy_to_image(const gpu::DeviceMemory& from, const gpu::DeviceMemory& image, size_t width,
                     size_t first_row, size_t rows, gpu::Events* events) override;
  void write(const gpu::DeviceMemory& to, const gpu::Region& region, const std::byte* host,
             bool must_wait) override;
  void read(const gpu::DeviceMemory& from, const gpu::Region& region, std::byte* host, bool must_wait,
            gpu::Events* events) override;
  std::byte* map(const gpu::DeviceMemory& memory, MapUse use, size_t begin, size_t bytes, bool must_wait,
                 gpu::Events* events) override;
  void unmap(const gpu::DeviceMemory&, std::byte*) override {}
  void mark(gpu::Events& events) override;
  void wait_for(const gpu::Event& event) override;
  void flush() override;
  void finish() override;

  /// After flush(): finish() waits for them, too.
  void add(std::shared_ptr<Commands> replayed);

 private:
  /// Calls body(commands) on commands that are open, and gives `events` theirs.
  template <class Body>
  std::shared_ptr<Commands> record(gpu::Events* events, const Body& body);
  /// With the mutex held.
  void open_commands();
  /// A buffer that no command uses, for bytes on their way.
  std::shared_ptr<Buffer> staging(size_t bytes);
  /// Whether nothing that was enqueued here, or that it waits for, still runs.
  bool is_idle();

  std::shared_ptr<LogicalDevice> device_;
  const Commands::Kind kind_;
  std::mutex mutex_;                                 // of what follows
  std::vector<std::shared_ptr<Commands>> commands_;  // in order; the last may be open
  std::vector<std::shared_ptr<Commands>> spare_;
  std::shared_ptr<Commands> awaited_;
  std::vector<std::shared_ptr<Buffer>> staging_;
};

/// Launches in one command buffer. `queue` outlives it.
std::unique_ptr<gpu::Recording> make_recording(std::shared_ptr<LogicalDevice> device, Queue& queue);

}  // namespace phonebit::engine::vulkan
