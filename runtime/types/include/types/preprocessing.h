// What images become before they are inputs.
#pragma once

#include <cstdint>

namespace phonebit::engine {

// The numbers of the enumerations are those of the file (docs/format.md) and of the C interface.

/// What the channels of an image are; none: the input is no image.
enum class ColorOrder : uint32_t { none = 0, gray = 1, rgb = 2, bgr = 3, rgba = 4 };

/// How an image of another size gets the size of the input (docs/preprocessing.md).
enum class Resize : uint32_t {
  stretch = 0,       ///< to the input's size, whatever becomes of its proportions
  shorter_side = 1,  ///< shorter side to resize_to, then the input's size out of the centre
  letterbox = 2,     ///< as large as fits with its proportions, in the centre; fill_level around it
};

/// How an image is resampled; bilinear and bicubic widen their window when they shrink an image.
enum class Interpolation : uint32_t { nearest = 0, bilinear = 1, bicubic = 2 };

/// What an image of levels 0..255 becomes before the network reads it, as the training did it. Of a u8 input,
/// the network computes the values itself; of an f32 input, the engine does for InputBuffer::is_levels.
struct Preprocessing {
  int input;  ///< index in Network::inputs()
  ColorOrder color_order;
  Resize resize;
  int resize_to;   ///< pixels
  int fill_level;  ///< 0..255
  Interpolation interpolation;
  double low, high;  ///< what levels 0 and 255 are before mean and deviation
  /// Of each channel, in the unit of low and high; all four are equal where an input has more channels.
  double mean[4], deviation[4];

  /// Level u of a channel stands for the value u * scale(channel) + offset(channel).
  float scale(int channel) const;
  float offset(int channel) const;
};

}  // namespace phonebit::engine
