#include "images/input_checks.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <string>

#include "images/image_layout.h"
#include "types/fail.h"

namespace phonebit::engine::images {
namespace {

int channels_of(ColorOrder order) {
  return order == ColorOrder::gray ? 1 : order == ColorOrder::rgba ? 4 : 3;
}

void check_choice(const std::string& where, const char* field, int value, int first, int last) {
  if (value < first || value > last)
    fail(ErrorCode::input, "%s: unknown %s %d, expected %d to %d", where.c_str(), field, value, first, last);
}

void check_geometry(const Preprocessing& rule, const TensorInfo& input, const std::string& where) {
  const int channels = channels_of(rule.color_order);
  if (input.channels != channels)
    fail(ErrorCode::input, "%s: the colour order has %d channels, the input has %d", where.c_str(), channels,
         input.channels);
  check_choice(where, "resize", static_cast<int>(rule.resize), 0, static_cast<int>(Resize::letterbox));
  check_choice(where, "interpolation", static_cast<int>(rule.interpolation), 0,
               static_cast<int>(Interpolation::bicubic));
  const int longer = std::max(input.height, input.width);
  if (rule.resize == Resize::shorter_side && (rule.resize_to < longer || rule.resize_to > kMaxSide))
    fail(ErrorCode::input,
         "%s: the shorter side becomes %d pixels, expected %d to %d to cut the input out of it",
         where.c_str(), rule.resize_to, longer, kMaxSide);
  if (rule.resize == Resize::letterbox && (rule.fill_level < 0 || rule.fill_level > 255))
    fail(ErrorCode::input, "%s: fill_level is %d, expected 0 to 255", where.c_str(), rule.fill_level);
}

/// Every level must stand for a finite float32.
void check_values(const Preprocessing& rule, const TensorInfo& input, const std::string& where) {
  if (rule.low == rule.high)
    fail(ErrorCode::input, "%s: low and high are both %g, expected two different numbers", where.c_str(),
         rule.low);
  for (int c = 0; c < input.channels; ++c) {
    const double deviation = rule.deviation[c];
    if (!(deviation > 0.0) || !std::isfinite(deviation))
      fail(ErrorCode::input, "%s: the deviation of channel %d is %g, expected a finite number above 0",
           where.c_str(), c, deviation);
    const double ends[] = {(rule.low - rule.mean[c]) / deviation, (rule.high - rule.mean[c]) / deviation,
                           (rule.high - rule.low) / deviation};
    for (const double end : ends) {
      if (!(std::fabs(end) <= FLT_MAX))
        fail(ErrorCode::input,
             "%s: low %g, high %g, mean %g and deviation %g of channel %d give values that float32 cannot "
             "hold",
             where.c_str(), rule.low, rule.high, rule.mean[c], deviation, c);
    }
  }
}

}  // namespace

void check_input(const Preprocessing& rule, const TensorInfo& input, const void* data, size_t bytes) {
  const std::string where = format_text("image for input '%s'", input.name.c_str());
  if (input.dtype == ElementType::bit)
    fail(ErrorCode::input, "%s: it takes bits, which images do not become; fill its buffer by other means",
         where.c_str());
  if (rule.color_order == ColorOrder::none)
    fail(ErrorCode::input,
         "%s: nothing says what its %d channels are; give a rule with a colour order, or convert the model "
         "with --input-range or --preprocessing",
         where.c_str(), input.channels);
  check_choice(where, "color_order", static_cast<int>(rule.color_order), static_cast<int>(ColorOrder::gray),
               static_cast<int>(ColorOrder::rgba));
  check_geometry(rule, input, where);
  if (input.dtype == ElementType::f32) check_values(rule, input, where);
  if (data == nullptr) fail(ErrorCode::input, "%s: the buffer is null", where.c_str());
  if (bytes != input.bytes())
    fail(ErrorCode::input, "%s: got a buffer of %zu bytes, expected %zu", where.c_str(), bytes,
         input.bytes());
  if (input.dtype == ElementType::f32 && reinterpret_cast<uintptr_t>(data) % alignof(float) != 0)
    fail(ErrorCode::input, "%s: the buffer is not 4-byte aligned", where.c_str());
}

}  // namespace phonebit::engine::images
