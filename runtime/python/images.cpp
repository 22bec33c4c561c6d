#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "gil_release.h"
#include "images/image.h"
#include "images/image_layout.h"
#include "types/fail.h"

namespace py = pybind11;

namespace phonebit::engine::python {
namespace {

using images::Image;

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

/// The fields of phonebit::engine::images::Image by name, "planes" as arrays of uint8.
Image image_of(const py::dict& fields, const std::vector<Plane>& planes) {
  Image image;
  image.format = static_cast<images::ImageFormat>(fields["format"].cast<int>());
  image.width = fields["width"].cast<int>();
  image.height = fields["height"].cast<int>();
  if (planes.size() > 3) fail(ErrorCode::input, "image: got %zu planes, expected at most 3", planes.size());
  for (size_t i = 0; i < planes.size(); ++i) image.planes[i] = planes[i].data();
  copy_steps(fields, "row_bytes", image.row_bytes);
  copy_steps(fields, "pixel_bytes", image.pixel_bytes);
  const auto crop = entry(fields, "crop", std::array<int, 4>{});
  image.crop_left = crop[0];
  image.crop_top = crop[1];
  image.crop_width = crop[2];
  image.crop_height = crop[3];
  image.rotation = entry(fields, "rotation", 0);
  image.is_mirrored = entry(fields, "is_mirrored", false);
  image.yuv = static_cast<images::YuvColors>(entry(fields, "yuv", 0));
  const images::ImageLayout layout = images::check_image(image);
  for (int i = 0; i < layout.plane_count; ++i) {
    const auto size = static_cast<uint64_t>(planes[static_cast<size_t>(i)].size());
    if (size < layout.plane_bytes[i])
      fail(ErrorCode::input, "image: plane %d has %llu bytes, expected at least %llu", i,
           static_cast<unsigned long long>(size), static_cast<unsigned long long>(layout.plane_bytes[i]));
  }
  return image;
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

/// The image of the input, and where the upright image lies: width and height as resized, left, top.
std::pair<py::array, std::array<int, 4>> prepare_image(const py::dict& image, const py::dict& rule,
                                                       const std::string& dtype,
                                                       const std::array<int, 3>& shape) {
  for (const int extent : shape) {
    if (extent < 1 || extent > images::kMaxSide)
      fail(ErrorCode::input, "shape: got %d, expected 1 to %d", extent, images::kMaxSide);
  }
  const TensorInfo input{"input", element_type(dtype), shape[0], shape[1], shape[2]};
  const auto planes = image["planes"].cast<std::vector<Plane>>();
  py::array result(input.dtype == ElementType::u8 ? py::dtype::of<uint8_t>() : py::dtype::of<float>(), shape);
  const size_t bytes = input.dtype == ElementType::bit ? input.bytes() : static_cast<size_t>(result.nbytes());
  const images::Image given = image_of(image, planes);
  const Preprocessing steps = rule_of(rule);
  void* target = result.mutable_data();
  const images::Placement place = [&] {
    const GilRelease unlocked;
    return images::prepare_image(given, steps, input, target, bytes);
  }();
  return {result, {place.scaled.width, place.scaled.height, place.left, place.top}};
}

}  // namespace

void define_images(py::module_& module) {
  module.def("prepare_image", &prepare_image, py::arg("image"), py::arg("rule"), py::arg("dtype"),
             py::arg("shape"),
             "One image (h, w, c) of an input, and where the given one lies: (width, height, left, top).");
}

}  // namespace phonebit::engine::python
