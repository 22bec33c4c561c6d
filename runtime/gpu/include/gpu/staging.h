// Copies between arrays of the host and buffers of a device.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gpu/device.h"
#include "threads/thread_pool.h"

namespace phonebit::engine::gpu {

/// The way of one network input or output. Memory of the device's own is reached through pinned memory, which
/// the device reads and writes by itself: in pieces, so that it copies some while threads of the host copy
/// others. Memory that the device shares with the host is mapped, and so copied once.
class Staging {
 public:
  enum class Way { pinned, mapped };
  static Way way_of(const DeviceFacts& device);

  Staging(std::shared_ptr<Device> device, Way way);
  ~Staging();
  Staging(Staging&&) noexcept = default;
  Staging& operator=(Staging&&) = delete;

  /// Enqueues the copy of bytes [begin, end) of `data` to the same place in a buffer; they were read when this
  /// returns. Returns the index of the first value of them that is not finite where the data `is_f32`; no such
  /// value: at least end / 4. What was uploaded from there before must have arrived; of data that come in several
  /// parts, all lie in the first `bytes`.
  size_t upload(Queue& queue, const DeviceMemory& to, const std::byte* data, size_t begin, size_t end,
                size_t bytes, bool is_f32, threads::ThreadPool& pool);
  /// Enqueues the copy of a buffer's begin, which take() then waits for.
  void download(Queue& queue, const DeviceMemory& from, size_t bytes);
  void take(std::byte* data, threads::ThreadPool& pool);

 private:
  void reserve(size_t bytes);

  std::shared_ptr<Device> device_;
  Way way_;
  std::unique_ptr<DeviceMemory> memory_;  // pinned
  std::byte* host_ = nullptr;             // what the host copies from or to
  size_t capacity_ = 0;                   // of memory_
  Queue* queue_ = nullptr;
  const DeviceMemory* from_ = nullptr;  // of the download that take() waits for
  size_t bytes_ = 0;
  Events arrived_;  // of its pieces
};

/// Reads the first `bytes` of a buffer; where it holds halves, into twice as many of floats. Where it need not
/// wait, `data` is valid when the queue has come so far.
void read_buffer(Queue& queue, const DeviceMemory& from, size_t bytes, bool is_half, bool must_wait,
                 void* data);

}  // namespace phonebit::engine::gpu
