// Images of every format, at every turn, against plain loops; their memory ends with their last sample, so
// that AddressSanitizer sees a read after it. tests/unit/images/test_native_images.py compares with
// Pillow.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "check_error.h"
#include "images/image.h"
#include "parameters.h"

namespace {

using namespace phonebit::engine;
using images::ImageFormat;
using images::YuvColors;
using Given = images::Image;  // an Image here is what a plain loop makes of it

std::mt19937 random_number;

int pick(int low, int high) {
  return low + static_cast<int>(random_number() % static_cast<unsigned>(high - low + 1));
}

/// Red, green, blue, alpha a pixel.
struct Image {
  int width, height;
  std::vector<uint8_t> levels =
      std::vector<uint8_t>(static_cast<size_t>(width) * static_cast<size_t>(height) * 4);

  uint8_t& at(int x, int y, int channel) {
    return levels[(static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) * 4 +
                  static_cast<size_t>(channel)];
  }
};

Image random_image(int width, int height) {
  Image image{width, height};
  for (uint8_t& level : image.levels) level = static_cast<uint8_t>(random_number());
  return image;
}

/// Pixel (x, y) of the result is pixel source(x, y) of the image.
template <class Source>
Image moved(Image& image, int width, int height, const Source& source) {
  Image result{width, height};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto [from_x, from_y] = source(x, y);
      for (int c = 0; c < 4; ++c) result.at(x, y, c) = image.at(from_x, from_y, c);
    }
  }
  return result;
}

Image upright(Image image, const Given& given) {
  using Point = std::pair<int, int>;
  if (given.crop_width > 0)
    image = moved(image, given.crop_width, given.crop_height,
                  [&](int x, int y) { return Point(given.crop_left + x, given.crop_top + y); });
  for (int angle = 0; angle < given.rotation; angle += 90)
    image =
        moved(image, image.height, image.width, [&](int x, int y) { return Point(y, image.height - 1 - x); });
  if (given.is_mirrored)
    image =
        moved(image, image.width, image.height, [&](int x, int y) { return Point(image.width - 1 - x, y); });
  return image;
}

double weight(Interpolation interpolation, double distance) {
  const double x = std::fabs(distance);
  if (interpolation == Interpolation::bilinear) return x < 1 ? 1 - x : 0;
  if (x < 1) return 1.5 * x * x * x - 2.5 * x * x + 1;
  return x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0;
}

/// A pixel of a resized row, by the definition in docs/preprocessing.md.
uint8_t resampled(Image& image, int y, int channel, double centre, double scale,
                  Interpolation interpolation) {
  if (interpolation == Interpolation::nearest) return image.at(static_cast<int>(centre), y, channel);
  const double widening = std::max(scale, 1.0);
  const double support = (interpolation == Interpolation::bicubic ? 2 : 1) * widening;
  const int begin = std::max(0, static_cast<int>(std::floor(centre - support + 0.5)));
  const int end = std::min(image.width, static_cast<int>(std::floor(centre + support + 0.5)));
  double total = 0;
  for (int x = begin; x < end; ++x) total += weight(interpolation, (x + 0.5 - centre) / widening);
  int64_t sum = 0;
  for (int x = begin; x < end; ++x) {
    const double share = weight(interpolation, (x + 0.5 - centre) / widening) / total;
    sum += image.at(x, y, channel) * std::llround(share * (1 << 22));
  }
  const int64_t half = 1 << 21;
  return static_cast<uint8_t>(std::clamp<int64_t>((sum + half) >> 22, 0, 255));
}

Image resized_rows(Image image, int width, Interpolation interpolation) {
  if (width == image.width) return image;
  Image result{width, image.height};
  const double scale = static_cast<double>(image.width) / width;
  double added = scale / 2;  // the nearest sample's centre is found by adding, which rounds in its own way
  for (int x = 0; x < width; ++x, added += scale) {
    const double centre = interpolation == Interpolation::nearest ? added : (x + 0.5) * scale;
    for (int y = 0; y < image.height; ++y)
      for (int c = 0; c < 4; ++c) result.at(x, y, c) = resampled(image, y, c, centre, scale, interpolation);
  }
  return result;
}

Image resized(Image image, int width, int height, Interpolation interpolation) {
  const auto transposed = [](Image whole) {
    return moved(whole, whole.height, whole.width, [](int x, int y) { return std::pair<int, int>(y, x); });
  };
  image = resized_rows(std::move(image), width, interpolation);
  return transposed(resized_rows(transposed(image), height, interpolation));
}

/// A plane whose memory ends with its last sample; sample (x, y) is get(x, y).
template <class Get>
std::vector<uint8_t> plane_of(int columns, int rows, int row_bytes, int pixel_bytes, int sample_bytes,
                              const Get& get) {
  std::vector<uint8_t> memory(
      static_cast<size_t>((rows - 1) * row_bytes + (columns - 1) * pixel_bytes + sample_bytes), 0xa5);
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x)
      for (int i = 0; i < sample_bytes; ++i)
        memory[static_cast<size_t>(y * row_bytes + x * pixel_bytes + i)] = get(x, y, i);
  memory.shrink_to_fit();
  return memory;
}

Given random_view(ImageFormat format, int width, int height) {
  Given given;
  given.format = format;
  given.width = width;
  given.height = height;
  given.rotation = 90 * pick(0, 3);
  given.is_mirrored = pick(0, 1) == 1;
  if (pick(0, 1) == 1) {
    given.crop_width = pick(1, width);
    given.crop_height = pick(1, height);
    given.crop_left = pick(0, width - given.crop_width);
    given.crop_top = pick(0, height - given.crop_height);
  }
  return given;
}

Preprocessing random_rule(ColorOrder order) {
  Preprocessing rule{0,  order, Resize::stretch, 0, 0, static_cast<Interpolation>(pick(0, 2)), 0.0, 1.0,
                     {}, {}};
  for (int c = 0; c < 4; ++c) {
    rule.mean[c] = 0.4 + 0.05 * c;
    rule.deviation[c] = 0.2 + 0.01 * c;
  }
  return rule;
}

/// The input that `order` says, of the whole upright given, compared in both types.
void expect_image(const Given& given, Image image, ColorOrder order, const std::string& claim) {
  const Preprocessing rule = random_rule(order);
  const TensorInfo levels{"x", ElementType::u8, pick(1, 40), pick(1, 40), 3};
  const TensorInfo values{"x", ElementType::f32, levels.height, levels.width, 3};
  image = resized(upright(std::move(image), given), levels.width, levels.height, rule.interpolation);
  std::vector<uint8_t> got_levels(levels.bytes());
  std::vector<float> got_values(got_levels.size());
  images::prepare_image(given, rule, levels, got_levels.data(), levels.bytes());
  images::prepare_image(given, rule, values, got_values.data(), values.bytes());
  std::vector<uint8_t> expected_levels;
  std::vector<float> expected_values;
  for (size_t i = 0; i < got_levels.size(); ++i) {
    const auto channel = static_cast<int>(i % 3);
    const auto pixel = static_cast<int>(i / 3);
    const uint8_t level = image.at(pixel % levels.width, pixel / levels.width,
                                   order == ColorOrder::bgr ? 2 - channel : channel);
    expected_levels.push_back(level);
    const float value = static_cast<float>(level) * rule.scale(channel);
    expected_values.push_back(value + rule.offset(channel));
  }
  CHECK_MESSAGE(got_levels == expected_levels, claim, ": levels");
  CHECK_MESSAGE(got_values == expected_values, claim, ": values");
}

void test_packed() {
  const struct {
    ImageFormat format;
    const char* name;
    std::vector<int> channels;
  } formats[] = {{ImageFormat::rgb, "rgb", {0, 1, 2}},
                 {ImageFormat::rgba, "rgba", {0, 1, 2, 3}},
                 {ImageFormat::bgr, "bgr", {2, 1, 0}},
                 {ImageFormat::bgra, "bgra", {2, 1, 0, 3}}};
  for (const auto& [format, name, channels] : formats) {
    const int width = pick(1, 70), height = pick(1, 70);
    Image image = random_image(width, height);
    Given given = random_view(format, width, height);
    const auto sample_bytes = static_cast<int>(channels.size());
    given.pixel_bytes[0] = sample_bytes + pick(0, 2);
    given.row_bytes[0] = width * given.pixel_bytes[0] + pick(0, 5);
    const std::vector<int>& order = channels;
    const std::vector<uint8_t> plane =
        plane_of(width, height, given.row_bytes[0], given.pixel_bytes[0], sample_bytes,
                 [&](int x, int y, int i) { return image.at(x, y, order[static_cast<size_t>(i)]); });
    given.planes[0] = plane.data();
    expect_image(given, image, pick(0, 1) == 1 ? ColorOrder::bgr : ColorOrder::rgb, name);
  }
}

/// The whole image as it is.
Image as_rgb(const Given& given) {
  Given whole = given;
  whole.crop_width = whole.rotation = 0;
  whole.is_mirrored = false;
  const TensorInfo input{"x", ElementType::u8, given.height, given.width, 4};
  Image image{given.width, given.height};
  images::prepare_image(whole, random_rule(ColorOrder::rgba), input, image.levels.data(), input.bytes());
  return image;
}

/// Whether a pixel has this luma, and these blue and red chroma less 128, of full range.
bool has_colors(Image& image, int x, int y, double luma, double blue, double red) {
  const double expected[] = {luma + 1.402 * red, luma - 0.344136 * blue - 0.714136 * red,
                             luma + 1.772 * blue};
  bool is_near = true;
  for (int c = 0; c < 3; ++c)
    is_near = is_near && std::fabs(image.at(x, y, c) - std::clamp(expected[c], 0.0, 255.0)) <= 1.0;
  return is_near;
}

void test_frames() {
  const int width = pick(1, 300), height = pick(1, 40);
  const int half_width = (width + 1) / 2, half_height = (height + 1) / 2;
  Image luma = random_image(width, height);
  Image chroma = random_image(half_width, half_height);
  const std::vector<uint8_t> luma_plane =
      plane_of(width, height, width + 3, 1, 1, [&](int x, int y, int) { return luma.at(x, y, 0); });
  Given given = random_view(ImageFormat::i420, width, height);
  given.yuv = YuvColors::bt601_full;
  given.planes[0] = luma_plane.data();
  given.row_bytes[0] = width + 3;

  Image first{0, 0};
  for (const int pixel_bytes : {1, 2, 3}) {  // two of these have loops of their own
    const int row_bytes = half_width * pixel_bytes + pick(0, 3);
    std::vector<uint8_t> planes[2];
    for (int i = 0; i < 2; ++i) {
      planes[i] = plane_of(half_width, half_height, row_bytes, pixel_bytes, 1,
                           [&](int x, int y, int) { return chroma.at(x, y, i); });
      given.planes[1 + i] = planes[i].data();
      given.row_bytes[1 + i] = row_bytes;
      given.pixel_bytes[1 + i] = pixel_bytes;
    }
    Image rgb = as_rgb(given);
    if (pixel_bytes == 1) first = rgb;
    CHECK_MESSAGE(rgb.levels == first.levels, "strides change nothing");
    expect_image(given, rgb, ColorOrder::rgb, "i420");
  }
  bool is_right = true;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      is_right = is_right && has_colors(first, x, y, luma.at(x, y, 0), chroma.at(x / 2, y / 2, 0) - 128.0,
                                        chroma.at(x / 2, y / 2, 1) - 128.0);
  CHECK_MESSAGE(is_right, "i420: colours");

  for (const bool is_nv21 : {false, true}) {
    const std::vector<uint8_t> pairs =
        plane_of(half_width, half_height, 2 * half_width, 2, 2,
                 [&](int x, int y, int i) { return chroma.at(x, y, is_nv21 ? 1 - i : i); });
    given.format = is_nv21 ? ImageFormat::nv21 : ImageFormat::nv12;
    given.planes[1] = pairs.data();
    given.row_bytes[1] = given.pixel_bytes[1] = 0;
    CHECK_MESSAGE(as_rgb(given).levels == first.levels, (is_nv21 ? "nv21" : "nv12"));
  }
}

TEST_CASE("packed images") {
  random_number.seed(test_seed());
  for (int round = 0; round < 60; ++round) test_packed();
}
TEST_CASE("frames") {
  random_number.seed(test_seed());
  for (int round = 0; round < 60; ++round) test_frames();
}

}  // namespace
