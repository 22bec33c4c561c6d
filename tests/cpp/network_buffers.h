// Inputs and outputs of networks, for native tests.
#pragma once

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "engine/network.h"

namespace phonebit::engine::test {

/// One buffer a tensor.
using Content = std::vector<std::vector<std::byte>>;

/// Random images: levels, or eighths so that float sums are exact.
inline Content random_inputs(const std::vector<TensorInfo>& tensors, int batch) {
  std::mt19937 random(5);
  Content content;
  for (const TensorInfo& tensor : tensors) {
    std::vector<std::byte> bytes(tensor.bytes() * static_cast<size_t>(batch));
    for (size_t at = 0; at < bytes.size(); at += tensor.dtype == ElementType::f32 ? 4 : 1) {
      if (tensor.dtype == ElementType::f32) {
        const float value = static_cast<float>(static_cast<int>(random() % 65) - 32) / 8;
        std::memcpy(bytes.data() + at, &value, sizeof value);
      } else {
        bytes[at] = static_cast<std::byte>(random() & 255);
      }
    }
    content.push_back(std::move(bytes));
  }
  return content;
}

inline std::vector<InputBuffer> inputs_of(const Content& content) {
  std::vector<InputBuffer> buffers;
  for (const auto& bytes : content) buffers.push_back({bytes.data(), bytes.size()});
  return buffers;
}

inline Content room_for(const std::vector<TensorInfo>& tensors, int batch) {
  Content content;
  for (const TensorInfo& tensor : tensors) content.emplace_back(tensor.bytes() * static_cast<size_t>(batch));
  return content;
}

inline std::vector<OutputBuffer> outputs_of(Content& content) {
  std::vector<OutputBuffer> buffers;
  for (auto& bytes : content) buffers.push_back({bytes.data(), bytes.size()});
  return buffers;
}

}  // namespace phonebit::engine::test
