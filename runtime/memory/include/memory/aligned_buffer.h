// A block of memory for kernels.
#pragma once

#include <cstddef>
#include <utility>

namespace phonebit::engine::memory {

/// Owns `size` bytes, aligned to 64. From 1 MiB on to 2 MiB, and backed by huge pages where the system offers
/// them: dense layers stream through their weights, where page walks would cost more than the arithmetic, and
/// maps that fit into the second cache do so only if their pages are not scattered. Not initialised. Move-only.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  /// Throws Error(device) when there is not enough memory; `what` names the purpose in its text.
  AlignedBuffer(size_t size, const char* what);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace phonebit::engine::memory
