#include <algorithm>
#include <cstring>

#include "images/image.h"
#include "images/image_layout.h"
#include "images/image_resizer.h"
#include "images/input_checks.h"
#include "threads/floating_point_scope.h"

namespace phonebit::engine::images {
namespace {

/// Writes pixels into an input as it reads them.
class InputWriter {
 public:
  InputWriter(const Preprocessing& rule, const TensorInfo& input, void* data, bool divides_by_alpha)
      : channels_(input.channels),
        divides_by_alpha_(divides_by_alpha),
        levels_(input.dtype == ElementType::u8 ? static_cast<uint8_t*>(data) : nullptr),
        values_(input.dtype == ElementType::f32 ? static_cast<float*>(data) : nullptr) {
    for (int c = 0; c < channels_; ++c) {
      lanes_[c] = rule.color_order == ColorOrder::bgr ? 2 - c : c;
      if (values_ == nullptr) continue;  // of levels, the rule's numbers were not checked
      scale_[c] = rule.scale(c);
      offset_[c] = rule.offset(c);
    }
  }

  /// `count` pixels, the first one to pixel `at` of the input, the others `step` pixels apart.
  void write(const uint8_t* pixels, ptrdiff_t count, ptrdiff_t at, ptrdiff_t step) const {
    for (ptrdiff_t i = 0; i < count; ++i, pixels += kLanes, at += step) {
      uint8_t pixel[kLanes];
      std::memcpy(pixel, pixels, kLanes);
      if (divides_by_alpha_) divide_by_alpha(pixel);
      put(pixel, at);
    }
  }

  /// All pixels, every channel at this level.
  void fill(int64_t pixels, int fill_level) const {
    const auto level = static_cast<uint8_t>(fill_level);
    const uint8_t pixel[kLanes] = {level, level, level, level};
    for (int64_t i = 0; i < pixels; ++i) put(pixel, static_cast<ptrdiff_t>(i));
  }

 private:
  void put(const uint8_t* pixel, ptrdiff_t at) const {
    for (int c = 0; c < channels_; ++c) {
      const ptrdiff_t element = at * channels_ + c;
      const uint8_t level = pixel[lanes_[c]];
      if (levels_ != nullptr)
        levels_[element] = level;
      else
        values_[element] = static_cast<float>(level) * scale_[c] + offset_[c];
    }
  }

  /// What multiplied() of row_reader.cpp did, backwards; colours brighter than their alpha are cut.
  static void divide_by_alpha(uint8_t* pixel) {
    const int alpha = pixel[3];
    if (alpha == 0 || alpha == 255) return;
    for (int lane = 0; lane < 3; ++lane)
      pixel[lane] = static_cast<uint8_t>(std::min(255, 255 * pixel[lane] / alpha));
  }

  int channels_;
  bool divides_by_alpha_;
  uint8_t* levels_;  ///< one of these two
  float* values_;
  int lanes_[kLanes] = {};
  float scale_[kLanes] = {}, offset_[kLanes] = {};
};

/// One axis of the upright, resized image, and where it lies in the input.
struct Axis {
  Resampling resampling;
  ptrdiff_t count;        ///< pixels of the input that it covers
  ptrdiff_t first, step;  ///< of these, where the first one in memory lies, and where the next
};

Axis place_axis(int from, int scaled, int corner, int input, bool is_reversed, Interpolation interpolation) {
  const int begin = std::max(0, -corner);
  const int count = std::min(scaled - begin, input);
  Axis axis{make_resampling(from, scaled, begin, count, interpolation), count, std::max(0, corner), 1};
  if (!is_reversed) return axis;
  reverse(axis.resampling, from);
  axis.first += count - 1;
  axis.step = -1;
  return axis;
}

RowColors row_colors(ColorOrder order, bool is_multiplied) {
  if (order == ColorOrder::gray) return RowColors::gray;
  if (order != ColorOrder::rgba) return RowColors::rgb;
  return is_multiplied ? RowColors::rgba_multiplied : RowColors::rgba;
}

}  // namespace

Placement prepare_image(const Image& image, const Preprocessing& rule, const TensorInfo& input, void* data,
                        size_t bytes) {
  const threads::FloatingPointScope rounding;
  const ImageLayout layout = check_image(image);
  check_input(rule, input, data, bytes);
  const bool is_turned = image.rotation % 180 != 0;
  const Size upright = is_turned ? Size{layout.height, layout.width} : Size{layout.width, layout.height};
  const Placement place = place_image(upright, {input.width, input.height}, rule);
  // Turned clockwise by 90 degrees, the image's first row is the upright right edge; by 180, that and the
  // first column is the lower edge; by 270, the first row is the left and the first column the lower edge.
  const bool is_right_first = (image.rotation == 90 || image.rotation == 180) != image.is_mirrored;
  const bool is_bottom_first = image.rotation == 180 || image.rotation == 270;
  const Axis across = place_axis(upright.width, place.scaled.width, place.left, input.width, is_right_first,
                                 rule.interpolation);
  const Axis down = place_axis(upright.height, place.scaled.height, place.top, input.height, is_bottom_first,
                               rule.interpolation);

  const bool is_resized = upright.width != place.scaled.width || upright.height != place.scaled.height;
  const bool is_multiplied =
      rule.color_order == ColorOrder::rgba && is_resized && rule.interpolation != Interpolation::nearest;
  const Axis& columns = is_turned ? down : across;
  const Axis& rows = is_turned ? across : down;
  const ptrdiff_t column_step = columns.step * (is_turned ? input.width : 1);
  const ptrdiff_t row_step = rows.step * (is_turned ? 1 : input.width);
  const ptrdiff_t corner = down.first * input.width + across.first;

  ImageResizer resizer(layout, row_colors(rule.color_order, is_multiplied), columns.resampling,
                       rows.resampling, is_turned);
  const InputWriter writer(rule, input, data, is_multiplied);
  if (across.count < input.width || down.count < input.height)
    writer.fill(int64_t{input.height} * input.width, rule.fill_level);
  for (ptrdiff_t row = 0; row < rows.count; ++row)
    writer.write(resizer.line(static_cast<size_t>(row)), columns.count, corner + row * row_step, column_step);
  return place;
}

}  // namespace phonebit::engine::images
