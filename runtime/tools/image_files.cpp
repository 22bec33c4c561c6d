#include "image_files.h"

#include <cctype>

#include "arguments.h"
#include "failure.h"

namespace phonebit::tools {
namespace {

constexpr int largest_side = 1 << 15;

/// Reads the words of a netpbm header.
class Header {
 public:
  Header(const std::string& path, const Bytes& bytes) : path_(path), bytes_(bytes) {}

  int number(const char* what, int highest) {
    skip_blanks();
    std::string digits;
    while (place_ < bytes_.size() && std::isdigit(bytes_[place_]) != 0)
      digits += static_cast<char>(bytes_[place_++]);
    return parse_number(path_ + ": " + what, digits, 1, highest);
  }

  /// Where the pixels begin: after one blank.
  size_t end() const { return place_ + 1; }

 private:
  void skip_blanks() {
    while (place_ < bytes_.size() && (std::isspace(bytes_[place_]) != 0 || bytes_[place_] == '#')) {
      if (bytes_[place_] == '#')
        while (place_ < bytes_.size() && bytes_[place_] != '\n') ++place_;
      else
        ++place_;
    }
  }

  const std::string& path_;
  const Bytes& bytes_;
  size_t place_ = 2;  // after "P6"
};

}  // namespace

ImageSize parse_size(const std::string& what, const std::string& text) {
  const size_t times = text.find('x');
  if (times == std::string::npos)
    fail("%s: got '%s', expected width and height, as 640x480", what.c_str(), text.c_str());
  return {parse_number(what + " (width)", text.substr(0, times), 1, largest_side),
          parse_number(what + " (height)", text.substr(times + 1), 1, largest_side)};
}

ImageFile read_netpbm(const std::string& path) {
  ImageFile image{PixelLayout::rgb, 0, 0, read_bytes(path), 0};
  const Bytes& bytes = image.bytes;
  const bool is_gray = bytes.size() > 2 && bytes[0] == 'P' && bytes[1] == '5';
  const bool is_rgb = bytes.size() > 2 && bytes[0] == 'P' && bytes[1] == '6';
  if (!is_gray && !is_rgb)
    fail("%s: not a binary PPM or PGM image (P6, P5), nor a frame called .nv21", path.c_str());
  if (is_gray) image.layout = PixelLayout::gray;
  Header header(path, bytes);
  image.width = header.number("width", largest_side);
  image.height = header.number("height", largest_side);
  const int levels = header.number("largest level", 65535);
  if (levels != 255) fail("%s: largest level %d, expected 255 (8 bits)", path.c_str(), levels);
  image.first = header.end();
  const size_t expected =
      size_t{is_gray ? 1u : 3u} * static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  if (bytes.size() < image.first || bytes.size() - image.first < expected)
    fail("%s: %zu bytes, expected %zu for %dx%d pixels: it is cut off", path.c_str(), bytes.size(),
         image.first + expected, image.width, image.height);
  return image;
}

ImageFile read_nv21(const std::string& path, ImageSize size) {
  const auto width = static_cast<size_t>(size.width), height = static_cast<size_t>(size.height);
  ImageFile frame{PixelLayout::nv21, size.width, size.height, read_bytes(path), 0};
  const size_t expected = width * height + 2 * ((width + 1) / 2) * ((height + 1) / 2);
  if (frame.bytes.size() != expected)
    fail("%s: %zu bytes, expected %zu for an NV21 frame of %dx%d", path.c_str(), frame.bytes.size(), expected,
         size.width, size.height);
  return frame;
}

}  // namespace phonebit::tools
