// u8 convolution by byte dot products. Weights are [block][group of 4 taps][64 channels][4 bytes]; four
// pixels bytes are broadcast as one 32-bit word and meet one 32-bit lane per channel.
//
// AVX-512 VNNI: vpdpbusd adds u8 * s8 (+1/-1) to 32-bit sums. AVX2: vpmaddubsw adds pairs of them to 16 bits.
// Others: weights are byte masks m (255 for +1, 0 for -1); with A = sum over taps of x & m and the window's
// total,
//   S = sum over +1 taps of x - sum over -1 taps of x = 2 A - total.
//
// Include inside an anonymous namespace of phonebit::cpu, after portable/intrinsics.h and kernel_types.h.
#pragma once

#include "u8_conv.inl"

#if defined(__AVX512F__)
constexpr int kU8Pixels = 5, kU8Vectors = 4;
#elif defined(__AVX2__)
constexpr int kU8Pixels = 2, kU8Vectors = 4;
#elif defined(__aarch64__)
constexpr int kU8Pixels = 3, kU8Vectors = 4;
#else
constexpr int kU8Pixels = 2, kU8Vectors = 2;
#endif

typedef uint16_t HalfVector __attribute__((vector_size(kVectorBytes)));

constexpr int kU8NoFlush = 1 << 30;
#if defined(__AVX512F__)
constexpr int kU8Positive = 1, kU8Negative = -1;
/// 32-bit sums never overflow where the accumulator itself does not.
constexpr int kU8FlushGroups = kU8NoFlush;
#elif defined(__AVX2__)
constexpr int kU8Positive = 1, kU8Negative = -1;
/// Two taps of 255 a group must stay within 16 signed bits: 64 * 510 = 32640.
constexpr int kU8FlushGroups = 64;
#else
constexpr int kU8Positive = 255, kU8Negative = 0;
/// Two taps of 255 a group must stay within 16 unsigned bits: 128 * 510 = 65280.
constexpr int kU8FlushGroups = 128;
#endif

/// sum += the dot products of four bytes of x and weight, by 32-bit lane; in 16-bit halves except on AVX-512.
PHONEBIT_INLINE WordVector add_products(WordVector sum, WordVector x, WordVector weight) {
#if defined(__AVX512F__)
  return (WordVector)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)weight);
#elif defined(__AVX2__)
  return (WordVector)_mm256_add_epi16((__m256i)sum, _mm256_maddubs_epi16((__m256i)x, (__m256i)weight));
#elif defined(__aarch64__)
  return (WordVector)vpadalq_u8((uint16x8_t)sum, (uint8x16_t)(x & weight));
#else
  const HalfVector chosen = (HalfVector)(x & weight);
  return (WordVector)((HalfVector)sum + (chosen & 0xff) + (chosen >> 8));
#endif
}

/// The 32-bit sum of each lane.
PHONEBIT_INLINE IntVector whole_sums(WordVector sum) {
#if defined(__AVX512F__)
  return (IntVector)sum;
#elif defined(__AVX2__)
  return (IntVector)_mm256_madd_epi16((__m256i)sum, _mm256_set1_epi16(1));
#else
  return (IntVector)((sum >> 16) + (sum & 0xffffu));
#endif
}

/// What a tile works on. Missing pixels repeat the first one; their results are not stored.
struct U8Tile {
  const uint32_t* weights;
  const uint8_t* windows[kU8Pixels];
  const int32_t* limits[kU8Pixels];
  int groups;
  uint32_t last_taps;  // mask of the last group's bytes that belong to the window
};

/// sums[p][j] = S over the groups [begin, end), for kU8Vectors vectors of channels from `channel` on.
PHONEBIT_INLINE void u8_part(const U8Tile& tile, int channel, int begin, int end,
                             IntVector (&sums)[kU8Pixels][kU8Vectors]) {
  WordVector sum[kU8Pixels][kU8Vectors] = {};
  [[maybe_unused]] WordVector total[kU8Pixels] = {};
  const uint8_t* windows[kU8Pixels];
  unroll<kU8Pixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { windows[p] = tile.windows[p]; });
  const uint32_t* weights = tile.weights + channel + (size_t)begin * kChannelBlock;
  int64_t g = begin;
  do {  // at least one group: gcc allocates registers badly around a loop that may not run
    // The last group may reach beyond the window, where only the filters' masks are 0.
    [[maybe_unused]] const WordVector real_taps =
        WordVector{} + (g == tile.groups - 1 ? tile.last_taps : ~0u);
    WordVector weight[kU8Vectors];
    unroll<kU8Vectors>([&](auto j)
                           PHONEBIT_LAMBDA_INLINE { weight[j] = load<WordVector>(weights + j * kLanes); });
    unroll<kU8Pixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
      uint32_t taps;
      __builtin_memcpy(&taps, windows[p] + g * kTapGroup, sizeof taps);
      const WordVector x = WordVector{} + taps;
      unroll<kU8Vectors>([&](auto j)
                             PHONEBIT_LAMBDA_INLINE { sum[p][j] = add_products(sum[p][j], x, weight[j]); });
      if constexpr (kU8Negative == 0) total[p] = add_products(total[p], x, real_taps);
    });
    weights += kChannelBlock;
  } while (++g < end);
  unroll<kU8Pixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
    unroll<kU8Vectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
      sums[p][j] = whole_sums(sum[p][j]);
      if constexpr (kU8Negative == 0) sums[p][j] = 2 * sums[p][j] - whole_sums(total[p]);
    });
  });
}

/// The same for all groups of a window that is too long for 16-bit sums.
[[maybe_unused]] PHONEBIT_NOINLINE void u8_sum_of_parts(const U8Tile& tile, int channel,
                                                        IntVector (&sums)[kU8Pixels][kU8Vectors]) {
  for (int begin = 0; begin < tile.groups; begin += kU8FlushGroups) {
    const int left = tile.groups - begin;
    IntVector part[kU8Pixels][kU8Vectors];
    u8_part(tile, channel, begin, left < kU8FlushGroups ? tile.groups : begin + kU8FlushGroups, part);
    for (int p = 0; p < kU8Pixels; p++) {
      for (int j = 0; j < kU8Vectors; j++) sums[p][j] = begin ? sums[p][j] + part[p][j] : part[p][j];
    }
  }
}

/// Calls finish(p, channel, S) for each vector of a tile's 64 channels. The two cases do not meet before
/// `finish`: gcc would spill the sums of the first one at every step of its loop.
template <class Finish>
PHONEBIT_INLINE void u8_tile(const U8Tile& tile, const Finish& finish) {
  for (int channel = 0; channel < kChannelBlock; channel += kU8Vectors * kLanes) {
    IntVector sums[kU8Pixels][kU8Vectors];
    if constexpr (kU8FlushGroups < kU8NoFlush) {
      if (tile.groups > kU8FlushGroups) {
        IntVector long_sums[kU8Pixels][kU8Vectors];
        u8_sum_of_parts(tile, channel, long_sums);
        unroll<kU8Pixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
          unroll<kU8Vectors>(
              [&](auto j) PHONEBIT_LAMBDA_INLINE { finish(p, channel + j * kLanes, long_sums[p][j]); });
        });
        continue;
      }
    }
    u8_part(tile, channel, 0, tile.groups, sums);
    unroll<kU8Pixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
      unroll<kU8Vectors>([&](auto j) PHONEBIT_LAMBDA_INLINE { finish(p, channel + j * kLanes, sums[p][j]); });
    });
  }
}

static bool direct_supports(const ConvShape&) { return true; }

static size_t direct_packed_bytes(const ConvShape& s) {
  const size_t filters = (size_t)block_count(s) * tap_groups(s) * kChannelBlock * kTapGroup;
  return u8_constants_bytes(s) + u8_limits_bytes(s) + filters;
}

static void direct_pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                                void* packed) {
  u8_pack_constants(s, weights, thresholds, packed);
  uint8_t* filters = (uint8_t*)packed + u8_constants_bytes(s) + u8_limits_bytes(s);
  const size_t block_bytes = (size_t)tap_groups(s) * kChannelBlock * kTapGroup;
  __builtin_memset(filters, 0, block_count(s) * block_bytes);
  for_each_u8_weight(s, weights, [&](int channel, int tap, int weight) {
    uint8_t* group =
        filters + channel / kChannelBlock * block_bytes + tap / kTapGroup * kChannelBlock * kTapGroup;
    const int value = weight > 0 ? kU8Positive : kU8Negative;
    group[channel % kChannelBlock * kTapGroup + tap % kTapGroup] = (uint8_t)value;
  });
}

/// Lanes [channel, channel + kLanes) of a pixel's 64 bits: whole bytes where a vector has them, so that
/// nothing needs combining in registers. Narrower vectors or them together; the word must be 0 before.
PHONEBIT_INLINE void put_bits(uint64_t* to, int channel, uint32_t bits) {
  if constexpr (kLanes >= 8) {
    __builtin_memcpy((char*)to + channel / 8, &bits, kLanes / 8);
  } else {
    *to |= (uint64_t)bits << channel;
  }
}

PHONEBIT_NOINLINE void direct_threshold(const U8Block& work, const U8Tile& tile, int pixel, int count) {
  uint64_t bits[kU8Pixels] = {};
  uint64_t* to[kU8Pixels];
  const bool in_place = kLanes >= 8 && work.channels == kChannelBlock && count == kU8Pixels;
  uint32_t* const first = in_place ? work.bits_of(pixel) : (uint32_t*)bits;
  const size_t step = in_place ? work.pixel_words : 2;
  unroll<kU8Pixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { to[p] = (uint64_t*)(first + p * step); });
  u8_tile(tile, [&](auto p, int channel, IntVector sum) PHONEBIT_LAMBDA_INLINE {
    put_bits(to[p], channel, u8_threshold_bits(sum, tile.limits[p] + channel));
  });
  if (in_place) return;
  for (int p = 0; p < count; p++) work.store_bits(pixel + p, bits[p]);
}

PHONEBIT_NOINLINE void direct_epilogue(const U8Block& work, const U8Tile& tile, int pixel, int count) {
  alignas(64) float values[kU8Pixels * kChannelBlock];
  u8_tile(tile, [&](auto p, int channel, IntVector sum) PHONEBIT_LAMBDA_INLINE {
    const FloatVector acc = u8_accumulator(sum, work.constants.multiplier, tile.limits[p] + channel);
    store(values + p * kChannelBlock + channel, acc);
  });
  work.finish(values, pixel, count);
}

static void direct_run(const ConvShape& s, const void* packed, const uint8_t*, const void* scratch,
                       const OutputRange& range, const AccumulatorSink& sink) {
  const uint32_t* filters =
      (const uint32_t*)((const char*)packed + u8_constants_bytes(s) + u8_limits_bytes(s));
  U8Tile tile;
  tile.groups = tap_groups(s);
  for (int block = range.block_begin; block < range.block_end; block++) {
    const U8Block work(s, packed, scratch, sink, block);
    tile.weights = filters + (size_t)block * tile.groups * kChannelBlock;
    tile.last_taps = ~0u >> 8 * (tile.groups * kTapGroup - work.taps);
    for_each_row_piece<kU8Pixels>(s, range, [&](int y, int x, int count) {
      tile.windows[0] = work.window(y, x);
      tile.limits[0] = work.limits_of(y, x);
      for (int p = 1; p < kU8Pixels; p++) {
        tile.windows[p] = p < count ? tile.windows[0] + p * work.pixel_bytes : tile.windows[0];
        tile.limits[p] = p < count ? work.limits_of(y, x + p) : tile.limits[0];
      }
      if (sink.threshold_bits) {
        direct_threshold(work, tile, y * s.out_w + x, count);
      } else {
        direct_epilogue(work, tile, y * s.out_w + x, count);
      }
    });
  }
}

constexpr U8ConvKernel kU8ConvDirect = {
    "u8conv_direct", direct_supports,  direct_packed_bytes, direct_pack_weights, u8_scratch_bytes,
    u8_prepare_rows, u8_prepare_input, kU8Pixels,           direct_run,
};
