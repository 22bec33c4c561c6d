// The sums of u8_conv_direct.inl: four taps of a pixel are broadcast as one 32-bit word, for one 32-bit lane
// per channel (add_products of simd/<isa>.h).
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

/// Taps are taken this many at a time, as one 32-bit broadcast; weights of the missing ones are 0.
constexpr int kTapGroup = 4, kLineOffset = 0;

/// A tile's sums stay in registers: kU8Vectors vectors of channels, fewer where fewer channels are left, and
/// as many pixels as that leaves room for.
constexpr int kU8Vectors = kU8Tile.vectors, kU8Sums = kU8Vectors * kU8Tile.pixels;
constexpr int kU8Positive = kPlusByte, kU8Negative = kMinusByte, kU8FlushGroups = kFlushGroups;

#include "u8_tile.inl"

/// sums[p][j] = S over the groups [begin, end), for kVectors vectors of channels from `channel` on.
template <int kVectors>
PHONEBIT_INLINE void u8_part(const U8Tile& tile, int channel, int begin, int end, U8Sums<kVectors>& sums) {
  constexpr int kPixels = kU8Pixels<kVectors>;
  U8VectorSum sum[kPixels][kVectors] = {};
  [[maybe_unused]] U8VectorSum total[kPixels] = {};
  const uint8_t* windows[kPixels];
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { windows[p] = tile.window + p * tile.pixel_bytes; });
  const uint32_t* weights = (const uint32_t*)tile.weights + channel + (size_t)begin * kChannelBlock;
  // The last group may reach beyond the window, where only the filters' masks are 0.
  [[maybe_unused]] const uint32_t last_taps = ~0u >> 8 * (tile.groups * kTapGroup - tile.taps);
  int64_t g = begin;
  do {  // at least one group: gcc allocates registers badly around a loop that may not run
    if constexpr (kPixels == 3 && kVectors == 4) PHONEBIT_MCA_MARKER("begin byte_masks 192 MAC");
    [[maybe_unused]] const WordVector real_taps = WordVector{} + (g == tile.groups - 1 ? last_taps : ~0u);
    WordVector weight[kVectors];
    unroll<kVectors>([&](int j)
                         PHONEBIT_LAMBDA_INLINE { weight[j] = load<WordVector>(weights + j * kLanes); });
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
      uint32_t taps;
      __builtin_memcpy(&taps, windows[p] + g * kTapGroup, sizeof taps);
      const WordVector x = WordVector{} + taps;
      unroll<kVectors>([&](int j)
                           PHONEBIT_LAMBDA_INLINE { sum[p][j] = add_products(sum[p][j], x, weight[j]); });
      if constexpr (kU8Negative == 0) total[p] = add_products(total[p], x, real_taps);
    });
    weights += kChannelBlock;
    if constexpr (kPixels == 3 && kVectors == 4) PHONEBIT_MCA_MARKER("end byte_masks");
  } while (++g < end);
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE {
      sums[p][j] = whole_sums(sum[p][j]);
      if constexpr (kU8Negative == 0) sums[p][j] = 2 * sums[p][j] - whole_sums(total[p]);
    });
  });
}
