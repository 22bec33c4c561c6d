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

/// A tile's sums stay in registers: kU8Vectors vectors of channels, less where fewer channels are left, and
/// as many pixels as that leaves room for.
#if defined(__AVX512F__)
constexpr int kU8Sums = 20, kU8Vectors = 4;
#elif defined(__AVX2__)
constexpr int kU8Sums = 8, kU8Vectors = 4;
#elif defined(__aarch64__)
constexpr int kU8Sums = 12, kU8Vectors = 4;
#else
constexpr int kU8Sums = 4, kU8Vectors = 2;
#endif

/// More than ten windows have more addresses than there are registers.
template <int kVectors>
constexpr int kU8Pixels = kU8Sums / kVectors < 10 ? kU8Sums / kVectors : 10;

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

/// What a tile works on: `count` pixels of one row. The windows behind them are computed too, wherever they
/// lead, but not stored.
struct U8Tile {
  const uint32_t* weights;
  const uint8_t* window;
  size_t pixel_bytes;  // from one window to the next
  int count, groups;
  uint32_t last_taps;  // mask of the last group's bytes that belong to the window
};

template <int kVectors>
using U8Sums = IntVector[kU8Pixels<kVectors>][kVectors];

/// sums[p][j] = S over the groups [begin, end), for kVectors vectors of channels from `channel` on.
template <int kVectors>
PHONEBIT_INLINE void u8_part(const U8Tile& tile, int channel, int begin, int end, U8Sums<kVectors>& sums) {
  constexpr int kPixels = kU8Pixels<kVectors>;
  WordVector sum[kPixels][kVectors] = {};
  [[maybe_unused]] WordVector total[kPixels] = {};
  const uint8_t* windows[kPixels];
  unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { windows[p] = tile.window + p * tile.pixel_bytes; });
  const uint32_t* weights = tile.weights + channel + (size_t)begin * kChannelBlock;
  int64_t g = begin;
  do {  // at least one group: gcc allocates registers badly around a loop that may not run
    // The last group may reach beyond the window, where only the filters' masks are 0.
    [[maybe_unused]] const WordVector real_taps =
        WordVector{} + (g == tile.groups - 1 ? tile.last_taps : ~0u);
    WordVector weight[kVectors];
    unroll<kVectors>([&](auto j)
                         PHONEBIT_LAMBDA_INLINE { weight[j] = load<WordVector>(weights + j * kLanes); });
    unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
      uint32_t taps;
      __builtin_memcpy(&taps, windows[p] + g * kTapGroup, sizeof taps);
      const WordVector x = WordVector{} + taps;
      unroll<kVectors>([&](auto j)
                           PHONEBIT_LAMBDA_INLINE { sum[p][j] = add_products(sum[p][j], x, weight[j]); });
      if constexpr (kU8Negative == 0) total[p] = add_products(total[p], x, real_taps);
    });
    weights += kChannelBlock;
  } while (++g < end);
  unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
      sums[p][j] = whole_sums(sum[p][j]);
      if constexpr (kU8Negative == 0) sums[p][j] = 2 * sums[p][j] - whole_sums(total[p]);
    });
  });
}

/// The same for all groups of a window that is too long for 16-bit sums.
template <int kVectors>
[[maybe_unused]] PHONEBIT_NOINLINE void u8_sum_of_parts(const U8Tile& tile, int channel,
                                                        U8Sums<kVectors>& sums) {
  for (int begin = 0; begin < tile.groups; begin += kU8FlushGroups) {
    const int left = tile.groups - begin;
    U8Sums<kVectors> part;
    u8_part<kVectors>(tile, channel, begin, left < kU8FlushGroups ? tile.groups : begin + kU8FlushGroups,
                      part);
    for (int p = 0; p < kU8Pixels<kVectors>; p++) {
      for (int j = 0; j < kVectors; j++) sums[p][j] = begin ? sums[p][j] + part[p][j] : part[p][j];
    }
  }
}

/// Calls finish(p, channel, S of kVectors vectors from `channel` on) for a tile's pixels until the first
/// `channels` channels are done. The two cases do not meet before `finish`: gcc would spill the sums of the
/// first one at every step of its loop.
template <int kVectors, class Finish>
PHONEBIT_INLINE void u8_tile(const U8Tile& tile, int channels, const Finish& finish) {
  const auto finish_sums = [&](int channel, const U8Sums<kVectors>& sums) PHONEBIT_LAMBDA_INLINE {
    const bool whole = tile.count == kU8Pixels<kVectors>;
    unroll<kU8Pixels<kVectors>>([&](auto p) PHONEBIT_LAMBDA_INLINE {
      if (whole || p < tile.count) finish(p, channel, sums[p]);
    });
  };
  // Fewer vectors than kU8Vectors are chosen where they hold all channels.
  constexpr bool kOnce = kVectors < kU8Vectors || kVectors * kLanes == kChannelBlock;
  for (int channel = 0; channel < (kOnce ? 1 : channels); channel += kVectors * kLanes) {
    if constexpr (kU8FlushGroups < kU8NoFlush) {
      if (tile.groups > kU8FlushGroups) {
        U8Sums<kVectors> long_sums;
        u8_sum_of_parts<kVectors>(tile, channel, long_sums);
        finish_sums(channel, long_sums);
        continue;
      }
    }
    U8Sums<kVectors> sums;
    u8_part<kVectors>(tile, channel, 0, tile.groups, sums);
    finish_sums(channel, sums);
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

/// A pixel's bits of kVectors vectors of channels from `first` on, in order: the first of a word clears the
/// others. Whole bytes where a vector has them, so that nothing needs combining in registers.
template <int kVectors>
PHONEBIT_INLINE void put_bits(const IntVector (&sums)[kVectors], const int32_t* limits, int first,
                              uint32_t* to) {
  [[maybe_unused]] uint32_t narrow = 0;
  unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
    const int channel = first + j * kLanes;
    const uint32_t bits = u8_threshold_bits(sums[j], limits + channel);
    if constexpr (kLanes < 8) {
      narrow |= bits << j * kLanes;
    } else if (channel % 32 == 0) {
      to[channel / 32] = bits;
    } else {
      __builtin_memcpy((char*)to + channel / 8, &bits, kLanes / 8);
    }
  });
  if constexpr (kLanes < 8) {
    static_assert(32 % (kVectors * kLanes) == 0, "the vectors are one part of a word");
    to[first / 32] = (first % 32 == 0 ? 0 : to[first / 32]) | narrow << first % 32;
  }
}

/// The bits of one tile, from output (y, x) on.
template <int kVectors>
PHONEBIT_INLINE void direct_threshold(const U8Block& work, const U8Tile& tile, int y, int x) {
  // Copies: the compiler must assume that stores of results change what pointers lead to.
  const int32_t* const limits = work.limits + work.constants.row_offsets()[y];
  const int* const columns = work.constants.column_offsets(work.s) + x;
  uint32_t* const out = work.bits_of(y * work.s.out_w + x);
  const size_t step = work.pixel_words;
  const auto finish = [&](auto p, int first, const IntVector(&sums)[kVectors]) PHONEBIT_LAMBDA_INLINE {
    put_bits(sums, limits + columns[p], first, out + p * step);
  };
  u8_tile<kVectors>(tile, work.channels, finish);
}

template <int kVectors>
PHONEBIT_INLINE void direct_epilogue(const U8Block& work, const U8Tile& tile, int y, int x) {
  alignas(64) float values[kU8Pixels<kVectors> * kChannelBlock];
  const auto finish = [&](auto p, int first, const IntVector(&sums)[kVectors]) PHONEBIT_LAMBDA_INLINE {
    const int32_t* const bases = work.limits_of(y, x + p) + first;
    float* const to = values + p * kChannelBlock + first;
    unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
      store(to + j * kLanes, u8_accumulator(sums[j], work.constants.multiplier, bases + j * kLanes));
    });
  };
  u8_tile<kVectors>(tile, work.channels, finish);
  work.finish(values, y * work.s.out_w + x, tile.count);
}

/// A piece of output row y, whose windows are in `line`.
template <int kVectors, bool kThreshold>
PHONEBIT_NOINLINE void direct_row(const U8Block& work, U8Tile tile, const uint8_t* line, int y, int x,
                                  int count) {
  constexpr int kPixels = kU8Pixels<kVectors>;
  for (; count > 0; count -= kPixels, x += kPixels) {
    tile.window = line + x * tile.pixel_bytes;
    tile.count = count < kPixels ? count : kPixels;
    if constexpr (kThreshold) {
      direct_threshold<kVectors>(work, tile, y, x);
    } else {
      direct_epilogue<kVectors>(work, tile, y, x);
    }
  }
}

/// A block with as few vectors of channels as hold it; line_of(y) gives output row y's line.
template <int kVectors, class LineOf>
static void direct_block(const U8Block& work, const OutputRange& range, const U8Tile& tile,
                         const LineOf& line_of) {
  if constexpr (kVectors > 1) {
    if (work.channels <= kVectors / 2 * kLanes) return direct_block<kVectors / 2>(work, range, tile, line_of);
  }
  const auto row = work.sink.threshold_bits ? direct_row<kVectors, true> : direct_row<kVectors, false>;
  for_each_row_piece<INT32_MAX>(work.s, range,
                                [&](int y, int x, int count) { row(work, tile, line_of(y), y, x, count); });
}

/// Bytes of a line and of what tiles read behind it: windows up to the last pixel's, also where the map ends
/// before.
static size_t direct_line_bytes(const ConvShape& s) {
  const U8Line line = u8_line(s);
  return line.line_bytes + (size_t)kU8Sums * line.column_step * line.column_bytes;
}

/// Lines of 16 KB stay in the first cache. Where a single block of channels reads them they are unrolled when
/// they are needed; otherwise once, into scratch, which for large maps is not in the second cache either.
constexpr size_t kU8LineBytes = 16 * 1024;

static bool keeps_lines(const ConvShape& s) {
  return block_count(s) > 1 || direct_line_bytes(s) > kU8LineBytes;
}

static void direct_run(const ConvShape& s, const void* packed, const uint8_t* input, const void* scratch,
                       const OutputRange& range, const AccumulatorSink& sink) {
  const uint32_t* filters =
      (const uint32_t*)((const char*)packed + u8_constants_bytes(s) + u8_limits_bytes(s));
  const bool kept = keeps_lines(s);
  const U8Line line = u8_line(s);
  alignas(64) uint8_t buffer[kU8LineBytes];
  U8Tile tile;
  tile.groups = tap_groups(s);
  for (int block = range.block_begin; block < range.block_end; block++) {
    const U8Block work(s, packed, scratch, sink, block);
    tile.weights = filters + (size_t)block * tile.groups * kChannelBlock;
    tile.pixel_bytes = work.pixel_bytes;
    tile.last_taps = ~0u >> 8 * (tile.groups * kTapGroup - work.taps);
    direct_block<kU8Vectors>(work, range, tile, [&](int y) -> const uint8_t* {
      if (kept) return work.window(y, 0);
      unroll_row(s, line, input, y, buffer);
      return buffer;
    });
  }
}

static size_t direct_scratch_bytes(const ConvShape& s) {
  return keeps_lines(s) ? u8_scratch_bytes(s) + direct_line_bytes(s) - u8_line(s).line_bytes : 0;
}

static int direct_prepare_rows(const ConvShape& s) { return keeps_lines(s) ? u8_prepare_rows(s) : 0; }

constexpr U8ConvKernel kU8ConvDirect = {
    "u8conv_direct",     direct_supports,  direct_packed_bytes,   direct_pack_weights, direct_scratch_bytes,
    direct_prepare_rows, u8_prepare_input, kU8Pixels<kU8Vectors>, direct_run,
};
