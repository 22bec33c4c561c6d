#include "images/placement.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "types/fail.h"

namespace phonebit::engine::pictures {
namespace {

/// Of a resized picture; a thin strip whose shorter side grows could need any amount of work.
constexpr int64_t kMaxPixels = int64_t{1} << 27;

/// value / 2, rounded to the nearest integer, halves to the even one; value >= 0.
int half_to_even(int value) {
  const int half = value / 2;
  return value % 2 == 0 ? half : half + half % 2;
}

/// As torchvision's Resize and CenterCrop: the longer side is rounded down.
Placement place_shorter_side(Size picture, Size input, int resize_to) {
  const int shorter = std::min(picture.width, picture.height);
  const int64_t width = int64_t{picture.width} * resize_to / shorter;
  const int64_t height = int64_t{picture.height} * resize_to / shorter;
  if (width * height > kMaxPixels)
    fail(ErrorCode::input,
         "picture: becomes too large with a shorter side of %d; got %lldx%lld, expected at most %lld pixels",
         resize_to, static_cast<long long>(width), static_cast<long long>(height),
         static_cast<long long>(kMaxPixels));
  const Size scaled{static_cast<int>(width), static_cast<int>(height)};
  return {scaled, -half_to_even(scaled.width - input.width), -half_to_even(scaled.height - input.height)};
}

/// nearbyint rounds halves to even, as Python's round does.
int scaled_side(int side, double ratio, int limit) {
  return std::min(limit, std::max(1, static_cast<int>(std::nearbyint(side * ratio))));
}

Placement place_letterbox(Size picture, Size input) {
  const double ratio = std::min(static_cast<double>(input.width) / picture.width,
                                static_cast<double>(input.height) / picture.height);
  const Size scaled{scaled_side(picture.width, ratio, input.width),
                    scaled_side(picture.height, ratio, input.height)};
  return {scaled, (input.width - scaled.width) / 2, (input.height - scaled.height) / 2};
}

}  // namespace

Placement place_picture(Size picture, Size input, const Preprocessing& rule) {
  switch (rule.resize) {
    case Resize::stretch:
      break;
    case Resize::shorter_side:
      return place_shorter_side(picture, input, rule.resize_to);
    case Resize::letterbox:
      return place_letterbox(picture, input);
  }
  return {input, 0, 0};
}

}  // namespace phonebit::engine::pictures
