// Camera frames and images as inputs of networks: cropped, turned, resized, normalised.
#pragma once

#include <cstddef>
#include <cstdint>

#include "images/placement.h"
#include "types/preprocessing.h"
#include "types/tensor.h"

namespace phonebit::engine::images {

/// What the planes of an image hold, 8 bits a sample.
enum class ImageFormat {
  gray,
  rgb,
  rgba,  ///< alpha counts only where the network reads four channels
  bgr,
  bgra,
  nv21,  ///< luma; V and U interleaved, for every second row and column (Android's cameras)
  nv12,  ///< luma; U and V interleaved
  i420,  ///< luma; U; V; with pixel_bytes any layout that Android calls YUV_420_888
};

/// How the levels of luma and chroma become red, green and blue.
enum class YuvColors { bt601_full, bt601_limited, bt709_limited };

/// A caller's image; the fields of phonebit_picture.
struct Image {
  ImageFormat format = ImageFormat::rgb;
  int width = 0, height = 0;
  const uint8_t* planes[3] = {};
  int row_bytes[3] = {};    ///< 0: no gap between rows
  int pixel_bytes[3] = {};  ///< from one sample of a plane to the next; 0: the format's own
  int crop_left = 0, crop_top = 0, crop_width = 0, crop_height = 0;  ///< crop_width 0: everything
  int rotation = 0;          ///< clockwise degrees that make it upright, after cropping
  bool is_mirrored = false;  ///< left and right are swapped after rotating
  YuvColors yuv = YuvColors::bt601_full;
};

/// Makes one image of `input` of a caller's image: RGB, cropped, turned, in the colours and of the size that `rule`
/// says, as levels (u8) or values (f32); `rule.input` is not looked at. The same numbers as Pillow makes
/// of the upright image. Luma and chroma first become RGB levels, each chroma sample for its 2x2 pixels;
/// the results are the formulas' rounded ones or neighbours. Returns where the upright image lies.
///
/// `data` holds input.bytes() bytes, 4-byte aligned for f32; untouched when this throws. Allocates some rows.
/// Any thread. Throws Error(input): an image, rule or buffer that cannot be, an input that takes no
/// images.
Placement prepare_image(const Image& image, const Preprocessing& rule, const TensorInfo& input, void* data,
                        size_t bytes);

}  // namespace phonebit::engine::images
