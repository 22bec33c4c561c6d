// The epilogue of binary convolutions on NEON, from counts of differing bits on.
#pragma once

#include "kernel_types.h"

namespace phonebit::engine::cpu {

/// The bits of the float 12582912. A sum with them has the bits of a float that is the other terms larger, so that one
/// subtraction of floats makes an accumulator of it, where conversions are several operations on most cores.
/// Accumulators stay far below the 2^22 for which this holds.
constexpr int32_t kFloatBias = 0x4b400000;
/// What is added to bases; counts begin at -2^15, to which the second term belongs.
constexpr int32_t kBaseBias = kFloatBias - 65536;

/// Pixels that go through the epilogue together, at most.
constexpr int kFinishedPixels = 8;

/// Up to kFinishedPixels pixels of a block of channels. counts: [count][kChannelBlock]; bases[p]: those of pixel p's
/// border class, [kChannelBlock]; totals: [count].
struct CountTile {
  const int16_t* counts;
  const int32_t* const* bases;
  const int32_t* totals;
  int factor, pixel0, count;
};

/// finish_pixels of portable/epilogue.inl with accumulator = base - factor count - total; bases and totals are
/// kFloatBias larger.
void finish_counts(const Epilogue& epilogue, const CountTile& tile, int channel0, int channels);

}  // namespace phonebit::engine::cpu
