// Copies between orders of maps, and from bits to floats.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace phonebit::engine::plugins {

/// `images` matrices of rows x columns elements become ones of columns x rows. In blocks, so that lines of the cache
/// are written as a whole.
template <class T>
void transpose(const T* from, T* to, int64_t images, int64_t rows, int64_t columns) {
  constexpr int64_t kBlock = 16;
  for (int64_t image = 0; image < images; ++image, from += rows * columns, to += rows * columns) {
    for (int64_t first = 0; first < columns; first += kBlock) {
      const int64_t end = std::min(columns, first + kBlock);
      for (int64_t top = 0; top < rows; top += kBlock) {
        const int64_t bottom = std::min(rows, top + kBlock);
        for (int64_t column = first; column < end; ++column)
          for (int64_t row = top; row < bottom; ++row) to[column * rows + row] = from[row * columns + column];
      }
    }
  }
}

/// Packed bits of `pixels` pixels as -1 and +1.
inline void unpack_bits(const uint32_t* words, float* values, int64_t pixels, int64_t channels) {
  for (int64_t pixel = 0; pixel < pixels; ++pixel, words += (channels + 31) / 32)
    for (int64_t c = 0; c < channels; ++c) *values++ = (words[c / 32] >> (c % 32) & 1) != 0 ? 1.0F : -1.0F;
}

}  // namespace phonebit::engine::plugins
