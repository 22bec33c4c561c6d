// Images that need no decoder: binary PPM and PGM (netpbm's P6 and P5, 8 bits), and raw NV21 frames.
#pragma once

#include <cstddef>
#include <string>

#include "files.h"

namespace phonebit::tools {

enum class PixelLayout { gray, rgb, nv21 };

/// An image in memory.
struct ImageFile {
  PixelLayout layout;
  int width, height;
  Bytes bytes;   ///< of the whole file
  size_t first;  ///< index of the first pixel's byte
};

/// Width and height of "640x480". Throws Failure for anything else.
struct ImageSize {
  int width, height;
};
ImageSize parse_size(const std::string& what, const std::string& text);

/// Reads a .ppm or .pgm file by its content. Throws Failure for other files and damaged ones.
ImageFile read_netpbm(const std::string& path);

/// Reads a camera frame: luma, then V and U interleaved for every second row and column. Throws Failure where
/// the file is of another length.
ImageFile read_nv21(const std::string& path, ImageSize size);

}  // namespace phonebit::tools
