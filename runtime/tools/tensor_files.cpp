#include "tensor_files.h"

#include <algorithm>
#include <cstring>

namespace phonebit::tools {
namespace {

std::string names_of(const std::vector<TensorInfo>& tensors) {
  std::string names;
  for (const TensorInfo& tensor : tensors) names += (names.empty() ? "" : ", ") + tensor.name;
  return names;
}

size_t element_bytes(Type type) { return type == Type::u8 ? 1 : 4; }

/// A number of a tensor with all its bits: "0x3f800000 (1)", "0x000000ff", "17".
std::string number_text(Type type, const uint8_t* bytes) {
  if (type == Type::u8) return std::to_string(*bytes);
  uint32_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  if (type == Type::bit) return format_text("0x%08x", bits);
  float value;
  std::memcpy(&value, bytes, sizeof value);
  return format_text("%.9g (0x%08x)", static_cast<double>(value), bits);
}

/// Row, column and channel of an element; of a packed tensor the channels of its word.
std::string place_text(const TensorInfo& tensor, size_t element) {
  const auto channels = static_cast<size_t>(tensor.channels);
  const size_t in_pixel = tensor.type == Type::bit ? (channels + 31) / 32 : channels;
  const size_t pixel = element / in_pixel, channel = element % in_pixel;
  const auto width = static_cast<size_t>(tensor.width);
  const std::string which = tensor.type == Type::bit ? format_text("channels %zu to %zu", 32 * channel,
                                                                   std::min(32 * channel + 31, channels - 1))
                                                     : format_text("channel %zu", channel);
  return format_text("row %zu, column %zu, %s", pixel / width, pixel % width, which.c_str());
}

}  // namespace

NamedFile parse_named_file(const char* option, const std::string& text,
                           const std::vector<TensorInfo>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {  // names may have '=' in them
    const std::string start = tensors[i].name + "=";
    if (text.compare(0, start.size(), start) == 0) return {i, text.substr(start.size())};
  }
  if (tensors.size() == 1 && text.find('=') == std::string::npos) return {0, text};
  fail("%s: got '%s', expected NAME=FILE with NAME one of: %s", option, text.c_str(),
       names_of(tensors).c_str());
}

std::string describe(const TensorInfo& tensor) {
  const char* type = type_name(tensor.type);
  return format_text("%s %s %dx%dx%d", tensor.name.c_str(), type, tensor.height, tensor.width,
                     tensor.channels);
}

int images_in(const std::string& path, size_t size, const TensorInfo& tensor) {
  if (size == 0 || size % tensor.bytes != 0)
    fail("%s: %zu bytes, expected a multiple of %zu: images of %s", path.c_str(), size, tensor.bytes,
         describe(tensor).c_str());
  return static_cast<int>(size / tensor.bytes);
}

std::string first_difference(const TensorInfo& tensor, const Bytes& got, const Bytes& expected) {
  if (got.size() != expected.size())
    return format_text("%s: %zu bytes, expected %zu", tensor.name.c_str(), got.size(), expected.size());
  const auto place = std::mismatch(got.begin(), got.end(), expected.begin());
  if (place.first == got.end()) return "";
  const size_t step = element_bytes(tensor.type);
  const size_t image = static_cast<size_t>(place.first - got.begin()) / tensor.bytes;
  const size_t element = static_cast<size_t>(place.first - got.begin()) % tensor.bytes / step;
  const size_t first = image * tensor.bytes + element * step;
  return format_text("%s: image %zu, %s: got %s, expected %s", tensor.name.c_str(), image,
                     place_text(tensor, element).c_str(), number_text(tensor.type, &got[first]).c_str(),
                     number_text(tensor.type, &expected[first]).c_str());
}

}  // namespace phonebit::tools
