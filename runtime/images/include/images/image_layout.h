// A caller's image, checked: where its samples lie.
#pragma once

#include <cstddef>
#include <cstdint>

#include "images/image.h"

namespace phonebit::engine::images {

/// One kind of sample: that of pixel (row, column) of its plane is at first[row * row_step + column * step].
struct Samples {
  const uint8_t* first;
  ptrdiff_t row_step, step;
};

/// Which part of which memory is looked at. Planes of chroma count in half rows and columns.
struct ImageLayout {
  bool is_yuv;
  Samples red, green, blue;               ///< equal for gray; unless is_yuv
  Samples alpha;                          ///< first is null where there is none
  Samples luma, blue_chroma, red_chroma;  ///< if is_yuv
  YuvColors yuv;
  int left, top, width, height;  ///< the crop
  int plane_count;
  uint64_t plane_bytes[3];  ///< from each plane's first byte to the end of its last sample
};

/// Longest side of an image.
constexpr int kMaxSide = 1 << 15;

/// Throws Error(input) for a format, size, stride, plane, crop or turn that cannot be.
ImageLayout check_image(const Image& image);

}  // namespace phonebit::engine::images
