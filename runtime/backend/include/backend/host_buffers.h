// Memory of the engine's own in place of a caller's buffers, and images inside batches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "loader/model.h"
#include "memory/aligned_buffer.h"
#include "types/tensor.h"

namespace phonebit::engine {

inline const std::byte* image_of(const InputBuffer& buffer, size_t image_bytes, int image) {
  return static_cast<const std::byte*>(buffer.data) + static_cast<size_t>(image) * image_bytes;
}

inline std::byte* image_of(const OutputBuffer& buffer, size_t image_bytes, int image) {
  return static_cast<std::byte*>(buffer.data) + static_cast<size_t>(image) * image_bytes;
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Zeroed memory for the inputs and outputs of `batch` images.
struct OwnTerminals {
  std::vector<memory::AlignedBuffer> memory;
  std::vector<InputBuffer> inputs;
  std::vector<OutputBuffer> outputs;

  OwnTerminals(const loader::Model& model, int batch);
};

}  // namespace phonebit::engine
