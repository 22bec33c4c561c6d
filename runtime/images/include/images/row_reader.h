// Rows of any image as red, green, blue, alpha.
#pragma once

#include <cstdint>

#include "images/image_layout.h"

namespace phonebit::engine::images {

/// What the levels are read as.
enum class RowColors {
  rgb,              ///< alpha is 255
  rgba,             ///< alpha is the image's, 255 where it has none
  rgba_multiplied,  ///< the same, the colours multiplied by it, as they must be before they are averaged
  gray,             ///< luma by ITU-R 601 in all lanes
};

/// Reads row `row`, columns [begin, end) of the crop into 4 bytes per pixel.
void read_row(const ImageLayout& image, RowColors colors, int row, int begin, int end, uint8_t* pixels);

}  // namespace phonebit::engine::images
