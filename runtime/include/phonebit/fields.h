// Structures that exist in several forms, of C, of C++ and of the engine, with fields of the same names: their
// numbers become enumerations or truth values and back. Used by the C++ interface and by libphonebit itself.
#pragma once

#include <algorithm>
#include <iterator>

namespace phonebit {
inline namespace v1 {
namespace detail {

template <class To, class From>
void assign(To& to, const From& from) {
  to = static_cast<To>(from);
}

/// The fields of a preprocessing rule.
template <class To, class From>
void assign_rule(To& to, const From& from) {
  assign(to.color_order, from.color_order);
  assign(to.resize, from.resize);
  assign(to.resize_to, from.resize_to);
  assign(to.fill_level, from.fill_level);
  assign(to.interpolation, from.interpolation);
  assign(to.low, from.low);
  assign(to.high, from.high);
  std::copy(std::begin(from.mean), std::end(from.mean), to.mean);
  std::copy(std::begin(from.deviation), std::end(from.deviation), to.deviation);
}

/// The fields of an image in the caller's memory.
template <class To, class From>
void assign_image(To& to, const From& from) {
  assign(to.format, from.format);
  assign(to.width, from.width);
  assign(to.height, from.height);
  std::copy(std::begin(from.planes), std::end(from.planes), to.planes);
  std::copy(std::begin(from.row_bytes), std::end(from.row_bytes), to.row_bytes);
  std::copy(std::begin(from.pixel_bytes), std::end(from.pixel_bytes), to.pixel_bytes);
  assign(to.crop_left, from.crop_left);
  assign(to.crop_top, from.crop_top);
  assign(to.crop_width, from.crop_width);
  assign(to.crop_height, from.crop_height);
  assign(to.rotation, from.rotation);
  assign(to.is_mirrored, from.is_mirrored);
  assign(to.yuv, from.yuv);
}

}  // namespace detail
}  // namespace v1
}  // namespace phonebit
