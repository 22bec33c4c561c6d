// The sums of u8_conv_direct.inl on processors with DotTile (neon_dotprod/byte_dots.inl,
// neon_i8mm/byte_dots.inl): products of signed bytes, added up in 32 bits.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and DotTile.
#pragma once

/// Lines hold x - kLineOffset, signed bytes.
constexpr int kTapGroup = kDotTaps, kLineOffset = 128;
/// 16 of 32 registers are sums: kU8Vectors vectors of channels and as many pixels as that leaves room for.
/// Pixel counts are even, as matrix products want them.
constexpr int kU8Sums = 16, kU8Vectors = 4;
constexpr int kU8Positive = 1, kU8Negative = -1;
/// 32-bit sums never overflow where the accumulator itself does not.
constexpr int kU8FlushGroups = kU8NoFlush;

#include "u8_tile.inl"

/// sums[p][j] = S over the groups [begin, end), for kVectors vectors of channels from `channel` on.
template <int kVectors>
PHONEBIT_NOINLINE void u8_part(const U8Tile& tile, int channel, int begin, int end, U8Sums<kVectors>& sums) {
  constexpr int kPixels = kU8Pixels<kVectors>;
  const uint8_t* windows[kPixels];
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { windows[p] = tile.window + p * tile.pixel_bytes; });
  const int8_t* weights = (const int8_t*)tile.weights + ((size_t)begin * kChannelBlock + channel) * kTapGroup;
  DotTile<kPixels, kVectors> dots;
  const int taps = end * kTapGroup < tile.taps ? end * kTapGroup : tile.taps;
  dots.add_run(windows, (size_t)begin * kTapGroup, (size_t)taps, weights, kChannelBlock * kTapGroup);
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE { sums[p][j] = dots.whole(p, j); });
  });
}
