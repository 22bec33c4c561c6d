// Random tensors for tests and timing.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "loader/model.h"

namespace phonebit::engine::gpu {

/// `images` images of a tensor: packed bits with clear tails, bytes, or multiples of 1/8 in [-4, 4].
inline std::vector<std::byte> random_content(const loader::Tensor& tensor, int images, std::mt19937& random) {
  std::vector<std::byte> content(tensor.bytes() * static_cast<size_t>(images));
  const auto words = static_cast<size_t>(tensor.words());
  for (size_t at = 0; at < content.size(); at += 4) {
    auto word = static_cast<uint32_t>(random());
    if (tensor.dtype == format::DataType::kF32) {
      const float value = static_cast<float>(static_cast<int>(word % 65) - 32) / 8;
      std::memcpy(&word, &value, sizeof word);
    }
    const bool has_tail = tensor.dtype == format::DataType::kBit && tensor.channels % 32 != 0;
    if (has_tail && at / 4 % words == words - 1) word &= (1u << (tensor.channels % 32)) - 1;
    std::memcpy(content.data() + at, &word, std::min<size_t>(4, content.size() - at));
  }
  return content;
}

}  // namespace phonebit::engine::gpu
