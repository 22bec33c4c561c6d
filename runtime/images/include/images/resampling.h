// How a row or column of levels becomes one of another length: Pillow's arithmetic, to the bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel_types.h"
#include "types/preprocessing.h"

namespace phonebit::engine::images {

/// Levels of a pixel in a row between the two directions: red, green, blue, alpha.
constexpr int kLanes = cpu::kPixelLevels;

/// Bytes that are read after a row's last pixel.
constexpr size_t kRowPadding = static_cast<size_t>(cpu::kSamplePlaces) * kLanes;

using cpu::kWeightBits;
using Window = cpu::SampleWindow;

/// One axis of a resized image.
struct Resampling {
  std::vector<Window> windows;   ///< ascending
  std::vector<int32_t> weights;  ///< `pitch` for each window, 0 from its `count` on
  int stride;                    ///< the most samples of a window; 1: samples are copied
  size_t pitch;                  ///< places of a window's weights

  int input_begin() const { return windows.front().first; }
  int input_end() const { return windows.back().first + windows.back().count; }
  const int32_t* weights_of(size_t window) const { return weights.data() + window * pitch; }
};

/// Output samples begin .. begin + count - 1 of `to` samples made of `from` ones.
///
/// Bilinear and bicubic: an output sample's centre lies at (i + 0.5) * from / to; the weights of the samples
/// around it are the filter's, as wide as an output sample where the image shrinks, divided by their sum,
/// rounded to kWeightBits. Nearest: the sample in which the centre lies. Where from equals to: copies.
Resampling make_resampling(int from, int to, int begin, int count, Interpolation interpolation);

/// The same for input samples that lie in the opposite order; so do the output samples then.
void reverse(Resampling& axis, int from);

/// Resamples a row along itself; `row` begins with pixel axis.input_begin() and has kRowPadding bytes after its last.
void resample_along(const Resampling& axis, const uint8_t* row, uint8_t* out);

/// Pixel by pixel, the weighted sum of `count` rows of `bytes` levels.
void resample_across(const uint8_t* const* rows, const int32_t* weights, int count, size_t bytes,
                     uint8_t* out);

}  // namespace phonebit::engine::images
