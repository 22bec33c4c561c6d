#include "images/image_layout.h"

#include <limits>

#include "types/fail.h"

namespace phonebit::engine::images {
namespace {

/// Where a kind of sample lies: plane and first byte.
struct Place {
  int plane, byte;
};
constexpr Place kNowhere = {-1, 0};

struct FormatTraits {
  const char* name;
  int plane_count;
  int sample_bytes[3];  ///< of a pixel (or pair of chroma samples) in each plane
  bool is_yuv;
  Place channels[4];  ///< red, green, blue, alpha; or luma, blue chroma, red chroma
};

/// In the order of ImageFormat.
constexpr FormatTraits kFormats[] = {
    {"gray", 1, {1, 0, 0}, false, {{0, 0}, {0, 0}, {0, 0}, kNowhere}},
    {"rgb", 1, {3, 0, 0}, false, {{0, 0}, {0, 1}, {0, 2}, kNowhere}},
    {"rgba", 1, {4, 0, 0}, false, {{0, 0}, {0, 1}, {0, 2}, {0, 3}}},
    {"bgr", 1, {3, 0, 0}, false, {{0, 2}, {0, 1}, {0, 0}, kNowhere}},
    {"bgra", 1, {4, 0, 0}, false, {{0, 2}, {0, 1}, {0, 0}, {0, 3}}},
    {"nv21", 2, {1, 2, 0}, true, {{0, 0}, {1, 1}, {1, 0}, kNowhere}},
    {"nv12", 2, {1, 2, 0}, true, {{0, 0}, {1, 0}, {1, 1}, kNowhere}},
    {"i420", 3, {1, 1, 1}, true, {{0, 0}, {1, 0}, {2, 0}, kNowhere}},
};
constexpr int kFormatCount = static_cast<int>(sizeof kFormats / sizeof kFormats[0]);

/// One plane with its gaps filled in.
struct Plane {
  const uint8_t* data;
  int64_t row_bytes, pixel_bytes;
  uint64_t bytes;
};

Plane check_plane(const Image& image, const FormatTraits& format, int index) {
  const bool is_chroma = index > 0;
  const int64_t columns = is_chroma ? (image.width + 1) / 2 : image.width;
  const int64_t rows = is_chroma ? (image.height + 1) / 2 : image.height;
  const int sample = format.sample_bytes[index];
  Plane plane{image.planes[index], image.row_bytes[index], image.pixel_bytes[index], 0};
  if (plane.data == nullptr)
    fail(ErrorCode::input, "image: plane %d is null, expected the %d planes of format %s", index,
         format.plane_count, format.name);
  if (plane.pixel_bytes == 0) plane.pixel_bytes = sample;
  if (plane.pixel_bytes < sample)
    fail(ErrorCode::input, "image: pixel_bytes of plane %d is %lld, expected 0 or at least %d for format %s",
         index, static_cast<long long>(plane.pixel_bytes), sample, format.name);
  const int64_t row_end = (columns - 1) * plane.pixel_bytes + sample;
  if (plane.row_bytes == 0) plane.row_bytes = columns * plane.pixel_bytes;
  if (plane.row_bytes < row_end)
    fail(ErrorCode::input,
         "image: row_bytes of plane %d is %lld, expected 0 or at least %lld for %lld samples a row", index,
         static_cast<long long>(plane.row_bytes), static_cast<long long>(row_end),
         static_cast<long long>(columns));
  plane.bytes = static_cast<uint64_t>((rows - 1) * plane.row_bytes + row_end);
  if (plane.bytes > static_cast<uint64_t>(std::numeric_limits<ptrdiff_t>::max()))
    fail(ErrorCode::input, "image: plane %d with row_bytes %d and pixel_bytes %d is larger than any memory",
         index, image.row_bytes[index], image.pixel_bytes[index]);
  return plane;
}

/// Fills in the part that is looked at.
void check_crop(const Image& image, ImageLayout& layout) {
  if (image.crop_width == 0) {
    layout.left = layout.top = 0;
    layout.width = image.width;
    layout.height = image.height;
    return;
  }
  layout.left = image.crop_left;
  layout.top = image.crop_top;
  layout.width = image.crop_width;
  layout.height = image.crop_height;
  const bool is_inside = layout.left >= 0 && layout.top >= 0 && layout.width > 0 && layout.height > 0 &&
                         layout.width <= image.width && layout.left <= image.width - layout.width &&
                         layout.height <= image.height && layout.top <= image.height - layout.height;
  if (!is_inside)
    fail(ErrorCode::input,
         "image: the crop has left %d, top %d, width %d, height %d; expected a part of the %dx%d pixels, or "
         "crop_width 0 for all",
         layout.left, layout.top, layout.width, layout.height, image.width, image.height);
}

void check_choices(const Image& image) {
  const int format = static_cast<int>(image.format);
  if (format < 0 || format >= kFormatCount)
    fail(ErrorCode::input, "image: unknown format %d, expected 0 to %d", format, kFormatCount - 1);
  const int yuv = static_cast<int>(image.yuv);
  if (yuv < 0 || yuv > static_cast<int>(YuvColors::bt709_limited))
    fail(ErrorCode::input, "image: unknown yuv colours %d, expected 0 to %d", yuv,
         static_cast<int>(YuvColors::bt709_limited));
  if (image.rotation != 0 && image.rotation != 90 && image.rotation != 180 && image.rotation != 270)
    fail(ErrorCode::input, "image: rotation is %d, expected 0, 90, 180 or 270", image.rotation);
  if (image.width < 1 || image.height < 1 || image.width > kMaxSide || image.height > kMaxSide)
    fail(ErrorCode::input, "image: got %dx%d pixels, expected 1 to %d on each side", image.width,
         image.height, kMaxSide);
}

}  // namespace

ImageLayout check_image(const Image& image) {
  check_choices(image);
  const FormatTraits& format = kFormats[static_cast<int>(image.format)];
  ImageLayout layout{};
  layout.is_yuv = format.is_yuv;
  layout.yuv = image.yuv;
  layout.plane_count = format.plane_count;
  Plane planes[3] = {};
  for (int i = 0; i < format.plane_count; ++i) {
    planes[i] = check_plane(image, format, i);
    layout.plane_bytes[i] = planes[i].bytes;
  }
  check_crop(image, layout);
  const auto samples = [&](int channel) -> Samples {
    const Place place = format.channels[channel];
    if (place.plane < 0) return {nullptr, 0, 0};
    const Plane& plane = planes[place.plane];
    return {plane.data + place.byte, static_cast<ptrdiff_t>(plane.row_bytes),
            static_cast<ptrdiff_t>(plane.pixel_bytes)};
  };
  if (format.is_yuv) {
    layout.luma = samples(0);
    layout.blue_chroma = samples(1);
    layout.red_chroma = samples(2);
  } else {
    layout.red = samples(0);
    layout.green = samples(1);
    layout.blue = samples(2);
    layout.alpha = samples(3);
  }
  return layout;
}

}  // namespace phonebit::engine::images
