#include "images/resampling.h"

#include <algorithm>
#include <cstring>

namespace phonebit::engine::images {
namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

uint8_t level(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

/// One pixel from `count` neighbours. Compilers keep its lanes in one vector.
void combine(const uint8_t* pixels, const int32_t* weights, int count, uint8_t* out) {
  int32_t sums[kLanes] = {kHalf, kHalf, kHalf, kHalf};
  for (int k = 0; k < count; ++k, pixels += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += pixels[lane] * weights[k];
  }
  for (int lane = 0; lane < kLanes; ++lane) out[lane] = level(sums[lane]);
}

}  // namespace

void resample_along(const Resampling& axis, const uint8_t* row, uint8_t* out) {
  const int begin = axis.input_begin();
  for (size_t i = 0; i < axis.windows.size(); ++i, out += kLanes) {
    const Window window = axis.windows[i];
    const uint8_t* pixels = row + static_cast<ptrdiff_t>(window.first - begin) * kLanes;
    if (axis.stride == 1)
      std::memcpy(out, pixels, kLanes);
    else
      combine(pixels, axis.weights_of(i), window.count, out);
  }
}

void resample_across(const uint8_t* const* rows, const int32_t* weights, int count, size_t bytes,
                     uint8_t* out) {
  // A block's sums stay in the first level of cache while the rows go by.
  constexpr size_t kBlock = 256;
  int32_t sums[kBlock];
  for (size_t begin = 0; begin < bytes; begin += kBlock) {
    const size_t width = std::min(kBlock, bytes - begin);
    std::fill(sums, sums + width, kHalf);
    for (int k = 0; k < count; ++k) {
      const uint8_t* row = rows[k] + begin;
      const int32_t weight = weights[k];
      for (size_t i = 0; i < width; ++i) sums[i] += row[i] * weight;
    }
    for (size_t i = 0; i < width; ++i) out[begin + i] = level(sums[i]);
  }
}

}  // namespace phonebit::engine::images
