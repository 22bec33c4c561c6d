// u8 convolution by byte dot products. Weights are [block][group of kTapGroup taps][64 channels][kTapGroup];
// a lane is a channel, and u8_products.inl or u8_dots.inl says how it is multiplied.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after u8_products.inl and u8_packing.inl, or
// u8_dots.inl and neon/shared_bytes.inl.
#pragma once

#include "u8_conv.inl"

/// Tiles with code of their own for the common cases, where that was measured to be faster: AVX2's of few
/// channels lose 7 %.
template <int kVectors>
constexpr bool kU8SpecialTiles = !kU8SumsInMemory && (kLanes == 16 || kVectors == kU8Vectors);

/// The same for all groups of a window, which may be too long for 16-bit sums.
template <int kVectors>
[[maybe_unused]] PHONEBIT_NOINLINE void u8_sum_of_parts(const U8Tile& tile, int channel,
                                                        U8Sums<kVectors>& sums) {
  for (int begin = 0; begin < tile.groups; begin += kU8FlushGroups) {
    const int left = tile.groups - begin;
    U8Sums<kVectors> part;
    u8_part<kVectors>(tile, channel, begin, left < kU8FlushGroups ? tile.groups : begin + kU8FlushGroups,
                      part);
    unroll<kU8Pixels<kVectors>>([&](int p) PHONEBIT_LAMBDA_INLINE {
      unroll<kVectors>(
          [&](int j) PHONEBIT_LAMBDA_INLINE { sums[p][j] = begin ? sums[p][j] + part[p][j] : part[p][j]; });
    });
  }
}

/// Calls finish(p, channel, S of kVectors vectors from `channel` on) for a tile's pixels until the first
/// `channels` channels are done. The two cases do not meet before `finish`: gcc would spill the sums of the
/// first one at every step of its loop.
template <int kVectors, class Finish>
PHONEBIT_INLINE void u8_tile(const U8Tile& tile, int channels, const Finish& finish) {
  const auto finish_sums = [&](int channel, const U8Sums<kVectors>& sums) PHONEBIT_LAMBDA_INLINE {
    if constexpr (kU8SumsInMemory) {
      for (int p = 0; p < tile.count; p++) finish(p, channel, sums[p]);
      return;
    }
    const bool whole = tile.count == kU8Pixels<kVectors>;
    if constexpr (kU8SpecialTiles<kVectors>) {
      if (whole) {
        unroll<kU8Pixels<kVectors>>([&](int p) PHONEBIT_LAMBDA_INLINE { finish(p, channel, sums[p]); });
        return;
      }
    }
    unroll<kU8Pixels<kVectors>>([&](int p) PHONEBIT_LAMBDA_INLINE {
      if (whole || p < tile.count) finish(p, channel, sums[p]);
    });
  };
  // Fewer vectors than kU8Vectors are chosen where they hold all channels.
  constexpr bool kOnce = kVectors < kU8Vectors || kVectors * kLanes == kChannelBlock;
  for (int channel = 0; channel < (kOnce ? 1 : channels); channel += kVectors * kLanes) {
    if constexpr (kU8FlushGroups < kU8NoFlush) {
      if (kU8SumsInMemory || tile.groups > kU8FlushGroups) {
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
  direct_pack(s, weights, thresholds, packed, kTapGroup, kLineOffset, kU8Positive, kU8Negative);
}

/// A pixel's bits of kVectors vectors of channels from `first` on, in order: the first of a word clears the
/// others. Whole bytes where a vector has them, so that nothing needs combining in registers.
template <int kVectors>
PHONEBIT_INLINE void put_bits(const IntVector (&sums)[kVectors], const int32_t* limits, int first,
                              uint32_t* to) {
  if constexpr (kLanes < 8) {
    static_assert(32 % (kVectors * kLanes) == 0, "the vectors are one part of a word");
    const uint32_t part = u8_threshold_bits(sums, limits + first);
    to[first / 32] = (first % 32 == 0 ? 0 : to[first / 32]) | part << first % 32;
    return;
  }
  unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE {
    const int channel = first + j * kLanes;
    const uint32_t bits = u8_threshold_bits(sums[j], limits + channel);
    if (channel % 32 == 0) {
      to[channel / 32] = bits;
    } else {
      __builtin_memcpy((char*)to + channel / 8, &bits, kLanes / 8);
    }
  });
}

/// The bits of one tile, from output (y, x) on.
template <int kVectors>
PHONEBIT_INLINE void direct_threshold(const U8Block& work, const U8Tile& tile, int y, int x) {
  // Copies: the compiler must assume that stores of results change what pointers lead to.
  const int32_t* const limits = work.limits + work.constants.row_offsets()[y];
  const int* const columns = work.constants.column_offsets(work.s) + x;
  uint32_t* const out = work.bits_of(y * work.s.out_w + x);
  const size_t step = work.pixel_words;
  if constexpr (kU8SpecialTiles<kVectors>) {
    // Most tiles: no pixel needs limits of its own.
    if (columns[0] == columns[tile.count - 1]) {
      const int32_t* const alike = limits + columns[0];
      const auto finish = [=](int p, int first, const IntVector(&sums)[kVectors])
                              PHONEBIT_LAMBDA_INLINE { put_bits(sums, alike, first, out + p * step); };
      return u8_tile<kVectors>(tile, work.channels, finish);
    }
  }
  const auto finish = [&](int p, int first, const IntVector(&sums)[kVectors]) PHONEBIT_LAMBDA_INLINE {
    put_bits(sums, limits + columns[p], first, out + p * step);
  };
  u8_tile<kVectors>(tile, work.channels, finish);
}

template <int kVectors>
PHONEBIT_INLINE void direct_epilogue(const U8Block& work, const U8Tile& tile, int y, int x) {
  alignas(64) float values[kU8Pixels<kVectors> * kChannelBlock];
  const auto finish = [&](int p, int first, const IntVector(&sums)[kVectors]) PHONEBIT_LAMBDA_INLINE {
    const int32_t* const bases = work.limits_of(y, x + p) + first;
    float* const to = values + p * kChannelBlock + first;
    unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE {
      store(to + j * kLanes, u8_accumulator(sums[j], work.constants.multiplier, bases + j * kLanes));
    });
  };
  u8_tile<kVectors>(tile, work.channels, finish);
  work.finish(values, y * work.s.out_w + x, tile.count);
}

/// A piece of output row y, whose windows are in `line`. kPixelBytes: bytes between them, where they are
/// known.
template <int kVectors, bool kThreshold, int kPixelBytes = 0>
PHONEBIT_NOINLINE void direct_row(const U8Block& work, U8Tile tile, const uint8_t* line, int y, int x,
                                  int count) {
  constexpr int kPixels = kU8Pixels<kVectors>;
  if constexpr (kPixelBytes > 0) tile.pixel_bytes = kPixelBytes;
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

/// A block with as few vectors of channels as hold it; line_of(y) returns output row y's line.
template <int kVectors, class LineOf>
static void direct_block(const U8Block& work, const OutputRange& range, const U8Tile& tile,
                         const LineOf& line_of) {
  if constexpr (kVectors > kU8MinVectors) {
    if (work.channels <= kVectors / 2 * kLanes) return direct_block<kVectors / 2>(work, range, tile, line_of);
  }
  auto row = work.sink.threshold_bits ? direct_row<kVectors, true> : direct_row<kVectors, false>;
  if constexpr (kU8SpecialTiles<kVectors>) {
    // The usual first layer, RGB and 3x3: addresses of windows need no registers.
    if (work.sink.threshold_bits && tile.pixel_bytes == 9) row = direct_row<kVectors, true, 9>;
  }
  for_each_row_piece<INT32_MAX>(work.s, range,
                                [&](int y, int x, int count) { row(work, tile, line_of(y), y, x, count); });
}

/// Bytes of a line and of what tiles read after it: windows up to the last pixel's, also where the map ends
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

PHONEBIT_RARE static void direct_run(const ConvShape& s, const void* packed, const uint8_t* input,
                                     const void* scratch, const OutputRange& range,
                                     const AccumulatorSink& sink) {
  const uint8_t* filters = (const uint8_t*)packed + u8_constants_bytes(s) + u8_limits_bytes(s);
  const bool kept = keeps_lines(s);
  const U8Line line = u8_line(s);
  alignas(64) uint8_t buffer[kU8LineBytes];
  U8Tile tile;
  tile.groups = tap_groups(s);
  for (int block = range.block_begin; block < range.block_end; block++) {
    const U8Block work(s, packed, scratch, sink, block);
    tile.weights = filters + (size_t)block * tile.groups * kChannelBlock * kTapGroup;
    tile.pixel_bytes = work.pixel_bytes;
    tile.taps = work.taps;
    direct_block<kU8Vectors>(work, range, tile, [&](int y) -> const uint8_t* {
      if (kept) return work.window(y, 0);
      unroll_row(s, line, input, y, buffer);
      return buffer;
    });
  }
}

PHONEBIT_RARE static size_t direct_scratch_bytes(const ConvShape& s) {
  return keeps_lines(s) ? u8_scratch_bytes(s) + direct_line_bytes(s) - u8_line(s).line_bytes : 0;
}

PHONEBIT_RARE static int direct_prepare_rows(const ConvShape& s) {
  return keeps_lines(s) ? u8_prepare_rows(s) : 0;
}

constexpr U8ConvKernel kU8ConvDirect = {
    "u8conv_direct",     direct_supports,  direct_packed_bytes,   direct_pack_weights, direct_scratch_bytes,
    direct_prepare_rows, u8_prepare_input, kU8Pixels<kU8Vectors>, direct_run,
};
