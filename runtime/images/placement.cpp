#include "images/placement.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "types/fail.h"

namespace phonebit::engine::images {
namespace {

/// Of a resized image; a thin strip whose shorter side grows could need any amount of work.
constexpr int64_t kMaxPixels = int64_t{1} << 27;

/// value / 2, rounded to the nearest integer, halves to the even one; value >= 0.
int half_to_even(int value) {
  const int half = value / 2;
  return value % 2 == 0 ? half : half + half % 2;
}

/// As torchvision's Resize and CenterCrop: the longer side is rounded down.
Placement place_shorter_side(Size image, Size input, int resize_to) {
  const int shorter = std::min(image.width, image.height);
  const int64_t width = int64_t{image.width} * resize_to / shorter;
  const int64_t height = int64_t{image.height} * resize_to / shorter;
  if (width * height > kMaxPixels)
    fail(ErrorCode::input,
         "image: becomes too large with a shorter side of %d; got %lldx%lld, expected at most %lld pixels",
         resize_to, static_cast<long long>(width), static_cast<long long>(height),
         static_cast<long long>(kMaxPixels));
  const Size scaled{static_cast<int>(width), static_cast<int>(height)};
  return {scaled, -half_to_even(scaled.width - input.width), -half_to_even(scaled.height - input.height)};
}

/// nearbyint rounds halves to even, as Python's round does.
int scaled_side(int side, double ratio, int limit) {
  return std::min(limit, std::max(1, static_cast<int>(std::nearbyint(side * ratio))));
}

Placement place_letterbox(Size image, Size input) {
  const double ratio = std::min(static_cast<double>(input.width) / image.width,
                                static_cast<double>(input.height) / image.height);
  const Size scaled{scaled_side(image.width, ratio, input.width),
                    scaled_side(image.height, ratio, input.height)};
  return {scaled, (input.width - scaled.width) / 2, (input.height - scaled.height) / 2};
}

}  // namespace

Placement place_image(Size image, Size input, const Preprocessing& rule) {
  switch (rule.resize) {
    case Resize::stretch:
      break;
    case Resize::shorter_side:
      return place_shorter_side(image, input, rule.resize_to);
    case Resize::letterbox:
      return place_letterbox(image, input);
  }
  return {input, 0, 0};
}

}  // namespace phonebit::engine::images
