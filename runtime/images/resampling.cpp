#include "images/resampling.h"

#include <cstdlib>
#include <cstring>

namespace phonebit::engine::images {
namespace {

/// Those of the instruction set that networks use: all give the same levels.
const cpu::ResamplingKernels& kernels() {
  static const cpu::Isa* const forced = cpu::select_isa(std::getenv("PHONEBIT_CPU"));
  static const cpu::Isa* const isa = forced != nullptr ? forced : cpu::select_isa(nullptr);
  return *isa->resampling;
}

}  // namespace

void resample_along(const Resampling& axis, const uint8_t* row, uint8_t* out) {
  const uint8_t* pixels = row - static_cast<ptrdiff_t>(axis.input_begin()) * kLanes;
  if (axis.stride > 1) {
    kernels().along(axis.windows.data(), axis.windows.size(), axis.weights.data(), axis.pitch, pixels, out);
    return;
  }
  for (const Window& window : axis.windows) {
    std::memcpy(out, pixels + static_cast<ptrdiff_t>(window.first) * kLanes, kLanes);
    out += kLanes;
  }
}

void resample_across(const uint8_t* const* rows, const int32_t* weights, int count, size_t bytes,
                     uint8_t* out) {
  kernels().across(rows, weights, count, bytes, out);
}

}  // namespace phonebit::engine::images
