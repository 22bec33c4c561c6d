// The epilogue of binary convolutions on NEON, from counts of differing bits on.
#pragma once

#include "kernel_types.h"

namespace phonebit::engine::cpu {

/// What is added to a base so that base - 2 count has the bits of a float, 12582912 more than the accumulator: then
/// one subtraction makes it a float32, where conversions take several operations of most cores. Accumulators stay far
/// below the 2^22 for which this holds; counts begin at -2^15, to which the second term belongs.
constexpr int32_t kBaseBias = 0x4b400000 - 65536;

/// Pixels that go through the epilogue together, at most.
constexpr int kFinishedPixels = 8;

/// Up to kFinishedPixels pixels of a block of channels. counts: [count][kChannelBlock] differing bits - 2^15; bases[p]: those of pixel
/// p's border class, [kChannelBlock], with kBaseBias.
struct CountTile {
  const int16_t* counts;
  const int32_t* const* bases;
  int pixel0, count;
};

/// finish_pixels of portable/epilogue.inl with accumulator = base - 2 (differing bits).
void finish_counts(const Epilogue& epilogue, const CountTile& tile, int channel0, int channels);

}  // namespace phonebit::engine::cpu
