// Copies between arrays of the host and buffers of a device.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "opencl/context.h"
#include "threads/thread_pool.h"

namespace phonebit::engine::opencl {

/// The way of one network input or output. Memory of the device's own is reached through pinned memory, which
/// the device reads and writes by itself: in pieces, so that it copies some while threads of the host copy
/// others. Memory that the device shares with the host is mapped, and so copied once.
class Staging {
 public:
  enum class Way { pinned, mapped };
  static Way way_of(const Device& device);

  Staging(std::shared_ptr<Context> context, Way way);
  ~Staging();
  Staging(Staging&&) noexcept = default;
  Staging& operator=(Staging&&) = delete;

  /// Enqueues the copy of bytes [begin, end) of `data` to the same place in a buffer; they were read when this
  /// returns. Returns the index of the first value of them that is not finite where the data `is_f32`; no such
  /// value: at least end / 4. What was uploaded from there before must have arrived; of data that come in several
  /// parts, all lie in the first `bytes`.
  size_t upload(cl_command_queue queue, cl_mem to, const std::byte* data, size_t begin, size_t end,
                size_t bytes, bool is_f32, threads::ThreadPool& pool);
  /// Enqueues the copy of a buffer's begin, which take() then waits for.
  void download(cl_command_queue queue, cl_mem from, size_t bytes);
  void take(std::byte* data, threads::ThreadPool& pool);

 private:
  void reserve(size_t bytes);

  std::shared_ptr<Context> context_;
  Way way_;
  Handle<cl_mem> memory_;      // pinned
  std::byte* host_ = nullptr;  // what the host copies from or to
  size_t capacity_ = 0;        // of memory_
  cl_command_queue queue_ = nullptr;
  cl_mem from_ = nullptr;  // of the download that take() waits for
  size_t bytes_ = 0;
  std::vector<Handle<cl_event>> arrived_;  // of its pieces
};

/// Reads the first `bytes` of a buffer; where it holds halves, into twice as many of floats. Where it need not
/// wait, `data` is valid when the queue has come so far.
void read_buffer(cl_command_queue queue, cl_mem from, size_t bytes, bool is_half, bool must_wait, void* data,
                 const char* name);

}  // namespace phonebit::engine::opencl
