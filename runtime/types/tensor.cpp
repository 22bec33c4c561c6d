#include "types/tensor.h"

namespace phonebit::engine {

size_t TensorInfo::bytes() const {
  const auto pixels = static_cast<size_t>(height) * static_cast<size_t>(width);
  switch (dtype) {
    case ElementType::bit:
      return pixels * static_cast<size_t>((channels + 31) / 32) * sizeof(uint32_t);
    case ElementType::u8:
      return pixels * static_cast<size_t>(channels);
    case ElementType::f32:
      break;
  }
  return pixels * static_cast<size_t>(channels) * sizeof(float);
}

}  // namespace phonebit::engine
