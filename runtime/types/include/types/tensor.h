// Tensors, and the memory that callers give for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace phonebit::engine {

/// Element type of a tensor in memory.
enum class ElementType {
  bit,  ///< -1 or +1, packed: 32 channels in a u32 word, least significant bit first, bit 1 = +1, unused bits
        ///< 0
  u8,
  f32,
};

/// An activation tensor: (height, width, channels), channels innermost, one image.
struct TensorInfo {
  std::string name;
  ElementType dtype;
  int height, width, channels;

  int64_t elements() const { return int64_t{height} * width * channels; }
  /// Bytes of one image in a buffer; a packed pixel has ceil(channels / 32) words.
  size_t bytes() const;
};

/// A caller's memory; the engine neither keeps nor frees it.
struct InputBuffer {
  const void* data;
  size_t bytes;
  /// Of a network input of type f32 for which the file has a preprocessing rule: levels (u8), a byte each, in
  /// place of the values that they stand for.
  bool is_levels = false;
};
struct OutputBuffer {
  void* data;
  size_t bytes;
};

/// A caller's memory of a GPU (OpenCL: cl_mem) and the first byte in it.
struct DeviceBuffer {
  void* memory;
  size_t offset;
};

}  // namespace phonebit::engine
