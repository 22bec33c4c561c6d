#include "builder/window_shape.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "loader/loader.h"
#include "types/fail.h"

namespace phonebit::engine::builder {
namespace {

using loader::Limits;

/// One axis of a window on a map.
struct Axis {
  const char* name;
  int64_t in, kernel, stride, dilation, pad_before, pad_after;

  int64_t span() const { return (kernel - 1) * dilation + 1; }
  int64_t out() const { return (in + pad_before + pad_after - span()) / stride + 1; }
};

void check_axis(const Axis& axis, const std::string& where) {
  for (const auto& [what, value] :
       {std::pair{"kernel", axis.kernel}, {"stride", axis.stride}, {"dilation", axis.dilation}}) {
    if (value < 1 || value > Limits::kExtent)
      fail(ErrorCode::input, "%s: %s of the %s is %" PRId64 ", expected 1 to %" PRIu32, where.c_str(), what,
           axis.name, value, Limits::kExtent);
  }
  for (const int64_t pad : {axis.pad_before, axis.pad_after}) {
    if (pad < 0 || pad >= axis.span())
      fail(ErrorCode::input,
           "%s: padding of the %s is %" PRId64
           ", expected at least 0 and less than the dilated kernel, %" PRId64,
           where.c_str(), axis.name, pad, axis.span());
  }
  const int64_t padded = axis.in + axis.pad_before + axis.pad_after;
  if (axis.span() > std::min<int64_t>(padded, Limits::kExtent))
    fail(ErrorCode::input, "%s: the dilated kernel of %" PRId64 " does not fit the padded %s of %" PRId64,
         where.c_str(), axis.span(), axis.name, padded);
}

/// Pooling has no value for a window without a tap inside the map.
void check_every_window_touches(const Axis& axis, const std::string& where) {
  for (int64_t out = 0; out < axis.out(); ++out) {
    const int64_t start = out * axis.stride - axis.pad_before;
    const int64_t first_tap = start >= 0 ? 0 : (-start + axis.dilation - 1) / axis.dilation;
    if (first_tap >= axis.kernel || start + first_tap * axis.dilation >= axis.in)
      fail(ErrorCode::input,
           "%s: the window at %s %" PRId64 " of the output has no tap inside the map; give less padding",
           where.c_str(), axis.name, out);
  }
}

}  // namespace

MapSize output_size(const Window& window, MapSize input, bool is_pool, const std::string& where) {
  const Axis axes[2] = {{"height", input.height, window.kernel_height, window.stride_height,
                         window.dilation_height, window.pad_top, window.pad_bottom},
                        {"width", input.width, window.kernel_width, window.stride_width,
                         window.dilation_width, window.pad_left, window.pad_right}};
  for (const Axis& axis : axes) {
    check_axis(axis, where);
    if (is_pool) check_every_window_touches(axis, where);
  }
  if (axes[0].kernel * axes[1].kernel > Limits::kTaps)
    fail(ErrorCode::input, "%s: the kernel has %" PRId64 " taps, this engine's limit is %" PRId64,
         where.c_str(), axes[0].kernel * axes[1].kernel, Limits::kTaps);
  return {static_cast<int>(axes[0].out()), static_cast<int>(axes[1].out())};
}

}  // namespace phonebit::engine::builder
