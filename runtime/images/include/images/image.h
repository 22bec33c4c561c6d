// Camera frames and pictures as inputs of networks: cropped, turned, resized, normalised.
#pragma once

#include <cstddef>
#include <cstdint>

#include "types/preprocessing.h"
#include "types/tensor.h"

namespace phonebit::engine::pictures {

/// What the planes of a picture hold, 8 bits a sample.
enum class PictureFormat {
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

/// A caller's picture; the fields of phonebit_picture.
struct Picture {
  PictureFormat format = PictureFormat::rgb;
  int width = 0, height = 0;
  const uint8_t* planes[3] = {};
  int row_bytes[3] = {};    ///< 0: no gap between rows
  int pixel_bytes[3] = {};  ///< from one sample of a plane to the next; 0: the format's own
  int crop_left = 0, crop_top = 0, crop_width = 0, crop_height = 0;  ///< crop_width 0: everything
  int rotation = 0;          ///< clockwise degrees that make it upright, after cropping
  bool is_mirrored = false;  ///< left and right are swapped after rotating
  YuvColors yuv = YuvColors::bt601_full;
};

/// Makes a picture one image of `input`: RGB, cropped, turned, in the colours and of the size that `rule`
/// says, as levels (u8) or values (f32); `rule.input` is not looked at. The same numbers as Pillow makes
/// of the upright picture. Luma and chroma first become RGB levels, each chroma sample for its 2x2 pixels;
/// the results are the formulas' rounded ones or neighbours.
///
/// `data` holds input.bytes() bytes, 4-byte aligned for f32; untouched when this throws. Allocates some rows.
/// Any thread. Throws Error(input): a picture, rule or buffer that cannot be, an input that takes no
/// pictures.
void prepare_picture(const Picture& picture, const Preprocessing& rule, const TensorInfo& input, void* data,
                     size_t bytes);

}  // namespace phonebit::engine::pictures
