// Memory of the engine's own in place of a caller's buffers, and images inside batches.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/network.h"
#include "memory/aligned_buffer.h"

namespace phonebit {

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

  template <class Model>
  OwnTerminals(const Model& model, int batch) {
    for (const int tensor : model.inputs) {
      const size_t bytes = allocate(model.tensor(tensor).bytes(), batch);
      inputs.push_back({memory.back().data(), bytes});
    }
    for (const int tensor : model.outputs) {
      const size_t bytes = allocate(model.tensor(tensor).bytes(), batch);
      outputs.push_back({memory.back().data(), bytes});
    }
  }

 private:
  size_t allocate(size_t image_bytes, int batch) {
    const size_t bytes = static_cast<size_t>(batch) * image_bytes;
    memory.emplace_back(bytes, "inputs and outputs");
    std::memset(memory.back().data(), 0, bytes);
    return bytes;
  }
};

}  // namespace phonebit
