#include "pictures.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "images/image.h"
#include "images/image_layout.h"
#include "types/fail.h"

namespace py = pybind11;

namespace phonebit::engine::python {
namespace {

using pictures::Picture;

using Plane = py::array_t<uint8_t, py::array::c_style>;

/// An entry of a dict, or its default.
template <class Value>
Value entry(const py::dict& fields, const char* name, const Value& otherwise) {
  return fields.contains(name) ? fields[name].cast<Value>() : otherwise;
}

void copy_steps(const py::dict& fields, const char* name, int (&steps)[3]) {
  const auto given = entry(fields, name, std::array<int, 3>{});
  std::copy(given.begin(), given.end(), steps);
}

/// The fields of phonebit::engine::pictures::Picture by name, "planes" as arrays of uint8.
Picture picture_of(const py::dict& fields, const std::vector<Plane>& planes) {
  Picture picture;
  picture.format = static_cast<pictures::PictureFormat>(fields["format"].cast<int>());
  picture.width = fields["width"].cast<int>();
  picture.height = fields["height"].cast<int>();
  if (planes.size() > 3) fail(ErrorCode::input, "picture: got %zu planes, expected at most 3", planes.size());
  for (size_t i = 0; i < planes.size(); ++i) picture.planes[i] = planes[i].data();
  copy_steps(fields, "row_bytes", picture.row_bytes);
  copy_steps(fields, "pixel_bytes", picture.pixel_bytes);
  const auto crop = entry(fields, "crop", std::array<int, 4>{});
  picture.crop_left = crop[0];
  picture.crop_top = crop[1];
  picture.crop_width = crop[2];
  picture.crop_height = crop[3];
  picture.rotation = entry(fields, "rotation", 0);
  picture.is_mirrored = entry(fields, "is_mirrored", false);
  picture.yuv = static_cast<pictures::YuvColors>(entry(fields, "yuv", 0));
  const pictures::PictureLayout layout = pictures::check_picture(picture);
  for (int i = 0; i < layout.plane_count; ++i) {
    const auto size = static_cast<uint64_t>(planes[static_cast<size_t>(i)].size());
    if (size < layout.plane_bytes[i])
      fail(ErrorCode::input, "picture: plane %d has %llu bytes, expected at least %llu", i,
           static_cast<unsigned long long>(size), static_cast<unsigned long long>(layout.plane_bytes[i]));
  }
  return picture;
}

/// The inverse of Network.preprocessing.
Preprocessing rule_of(const py::dict& record) {
  Preprocessing rule{};
  rule.color_order = static_cast<ColorOrder>(record["color_order"].cast<int>());
  rule.resize = static_cast<Resize>(record["resize"].cast<int>());
  rule.resize_to = record["resize_to"].cast<int>();
  rule.fill_level = record["fill_level"].cast<int>();
  rule.interpolation = static_cast<Interpolation>(record["interpolation"].cast<int>());
  rule.low = record["low"].cast<double>();
  rule.high = record["high"].cast<double>();
  const auto mean = record["mean"].cast<std::array<double, 4>>();
  const auto deviation = record["deviation"].cast<std::array<double, 4>>();
  std::copy(mean.begin(), mean.end(), rule.mean);
  std::copy(deviation.begin(), deviation.end(), rule.deviation);
  return rule;
}

ElementType element_type(const std::string& dtype) {
  return dtype == "bit" ? ElementType::bit : dtype == "u8" ? ElementType::u8 : ElementType::f32;
}

py::array prepare_picture(const py::dict& picture, const py::dict& rule, const std::string& dtype,
                          const std::array<int, 3>& shape) {
  for (const int extent : shape) {
    if (extent < 1 || extent > pictures::kMaxSide)
      fail(ErrorCode::input, "shape: got %d, expected 1 to %d", extent, pictures::kMaxSide);
  }
  const TensorInfo input{"input", element_type(dtype), shape[0], shape[1], shape[2]};
  const auto planes = picture["planes"].cast<std::vector<Plane>>();
  py::array result(input.dtype == ElementType::u8 ? py::dtype::of<uint8_t>() : py::dtype::of<float>(), shape);
  const size_t bytes = input.dtype == ElementType::bit ? input.bytes() : static_cast<size_t>(result.nbytes());
  pictures::prepare_picture(picture_of(picture, planes), rule_of(rule), input, result.mutable_data(), bytes);
  return result;
}

}  // namespace

void define_pictures(py::module_& module) {
  module.def("prepare_picture", &prepare_picture, py::arg("picture"), py::arg("rule"), py::arg("dtype"),
             py::arg("shape"), "A picture as one image (h, w, c) of an input; runtime/pictures/picture.h.");
}

}  // namespace phonebit::engine::python
