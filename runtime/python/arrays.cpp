#include "arrays.h"

#include <limits>
#include <string>

#include "types/fail.h"

namespace phonebit::engine::python {
namespace {

namespace py = pybind11;

size_t words_of(int channels) { return static_cast<size_t>((channels + 31) / 32); }

const char* dtype_name(ElementType dtype) {
  switch (dtype) {
    case ElementType::bit:
      return "int8 (of -1 and +1)";
    case ElementType::u8:
      return "uint8";
    case ElementType::f32:
      break;
  }
  return "float32";
}

bool has_dtype(const py::array& array, ElementType dtype) {
  switch (dtype) {
    case ElementType::bit:
      return py::isinstance<py::array_t<int8_t>>(array);
    case ElementType::u8:
      return py::isinstance<py::array_t<uint8_t>>(array);
    case ElementType::f32:
      break;
  }
  return py::isinstance<py::array_t<float>>(array);
}

std::string shape_text(const py::array& array) { return py::str(array.attr("shape")).cast<std::string>(); }

std::vector<py::ssize_t> image_shape(const TensorInfo& tensor, py::ssize_t batch) {
  return {batch, tensor.height, tensor.width, tensor.channels};
}

bool has_image_shape(const py::array& array, const TensorInfo& tensor) {
  return array.ndim() == 4 && array.shape(1) == tensor.height && array.shape(2) == tensor.width &&
         array.shape(3) == tensor.channels;
}

std::vector<uint32_t> pack(const char* role, const TensorInfo& tensor, const int8_t* values, size_t pixels) {
  const size_t words = words_of(tensor.channels);
  std::vector<uint32_t> packed(pixels * words, 0);
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    for (int c = 0; c < tensor.channels; ++c) {
      const int8_t value = *values++;
      if (value != 1 && value != -1)
        fail(ErrorCode::input, "%s '%s': got the value %d, expected -1 or +1", role, tensor.name.c_str(),
             value);
      if (value > 0) packed[pixel * words + static_cast<size_t>(c / 32)] |= 1u << (c % 32);
    }
  }
  return packed;
}

}  // namespace

InputArrays::InputArrays(const char* role, const py::sequence& arrays, const std::vector<TensorInfo>& tensors,
                         const std::vector<int>& which, bool takes_levels) {
  if (arrays.size() != which.size())
    fail(ErrorCode::input, "%ss: got %zu arrays, expected %zu", role, static_cast<size_t>(arrays.size()),
         which.size());
  for (size_t i = 0; i < which.size(); ++i)
    take(role, py::object(arrays[i]), tensors[static_cast<size_t>(which[i])], takes_levels);
}

void InputArrays::take(const char* role, const py::handle& object, const TensorInfo& tensor,
                       bool takes_levels) {
  const char* name = tensor.name.c_str();
  if (!py::isinstance<py::array>(object))
    fail(ErrorCode::input, "%s '%s': got %s, expected a NumPy array", role, name,
         py::str(py::type::of(object).attr("__name__")).cast<std::string>().c_str());
  const auto array = py::reinterpret_borrow<py::array>(object);
  const bool is_levels =
      takes_levels && tensor.dtype == ElementType::f32 && has_dtype(array, ElementType::u8);
  if (!is_levels && !has_dtype(array, tensor.dtype))
    fail(ErrorCode::input, "%s '%s': got dtype %s, expected %s", role, name,
         py::str(array.dtype()).cast<std::string>().c_str(), dtype_name(tensor.dtype));
  if (!has_image_shape(array, tensor))
    fail(ErrorCode::input, "%s '%s': got shape %s, expected (N, %d, %d, %d)", role, name,
         shape_text(array).c_str(), tensor.height, tensor.width, tensor.channels);
  if ((array.flags() & py::array::c_style) == 0)
    fail(ErrorCode::input, "%s '%s': the array is not C-contiguous; pass numpy.ascontiguousarray(array)",
         role, name);
  const py::ssize_t batch = array.shape(0);
  if (batch < 1 || batch > std::numeric_limits<int>::max())
    fail(ErrorCode::input, "%s '%s': got a batch of %zd, expected at least 1", role, name,
         static_cast<ptrdiff_t>(batch));
  if (!arrays_.empty() && batch != batch_)
    fail(ErrorCode::input, "%s '%s': got a batch of %zd, but the first %s has %d", role, name,
         static_cast<ptrdiff_t>(batch), role, batch_);
  batch_ = static_cast<int>(batch);
  if (tensor.dtype == ElementType::bit) {
    const auto pixels = static_cast<size_t>(array.size()) / static_cast<size_t>(tensor.channels);
    packed_.push_back(pack(role, tensor, static_cast<const int8_t*>(array.data()), pixels));
    buffers_.push_back({packed_.back().data(), packed_.back().size() * sizeof(uint32_t)});
  } else {
    buffers_.push_back({array.data(), static_cast<size_t>(array.nbytes()), is_levels});
  }
  arrays_.push_back(array);
}

OutputArrays::OutputArrays(const std::vector<TensorInfo>& tensors, const std::vector<int>& which, int batch) {
  packed_.reserve(which.size());
  for (const int index : which) {
    const TensorInfo& tensor = tensors[static_cast<size_t>(index)];
    const std::vector<py::ssize_t> shape = image_shape(tensor, batch);
    if (tensor.dtype == ElementType::bit) {
      py::array_t<int8_t> values(shape);
      const auto pixels = static_cast<size_t>(values.size()) / static_cast<size_t>(tensor.channels);
      packed_.push_back({std::vector<uint32_t>(pixels * words_of(tensor.channels)), values.mutable_data(),
                         pixels, tensor.channels});
      std::vector<uint32_t>& words = packed_.back().words;
      buffers_.push_back({words.data(), words.size() * sizeof(uint32_t)});
      arrays_.push_back(std::move(values));
      continue;
    }
    py::array array = tensor.dtype == ElementType::u8 ? py::array(py::array_t<uint8_t>(shape))
                                                      : py::array(py::array_t<float>(shape));
    buffers_.push_back({array.mutable_data(), static_cast<size_t>(array.nbytes())});
    arrays_.push_back(std::move(array));
  }
}

void OutputArrays::unpack() {
  for (const Packed& bits : packed_) {
    const size_t words = words_of(bits.channels);
    int8_t* value = bits.values;
    for (size_t pixel = 0; pixel < bits.pixels; ++pixel) {
      const uint32_t* const of_pixel = bits.words.data() + pixel * words;
      for (int c = 0; c < bits.channels; ++c) *value++ = (of_pixel[c / 32] >> (c % 32) & 1) != 0 ? 1 : -1;
    }
  }
}

}  // namespace phonebit::engine::python
