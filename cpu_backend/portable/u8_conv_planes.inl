// u8 convolution by bit-planes, PhoneBit equation 2: x = sum over i of 2^i x_i with bits x_i, so
//   S = sum w x = sum over i of 2^i (2 popcount(x_i & w) - popcount(x_i)),   w as bits, 1 = +1.
// Kept as a variant of its own: it needs nothing but popcount, and it is the paper's formula.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "u8_conv.inl"

/// Windows of up to 32 * kPlaneWords taps fit the planes of one pixel.
constexpr int kPlaneWords = 128;
static_assert(kLineOffset == 0, "bit-planes are of unsigned bytes");

static inline int plane_words(const ConvShape& s) { return words(s.kernel_h * s.kernel_w * s.in_c); }

static bool planes_support(const ConvShape& s) { return plane_words(s) <= kPlaneWords; }

static size_t planes_packed_bytes(const ConvShape& s) {
  const size_t filters = sizeof(uint32_t) * block_count(s) * kChannelBlock * plane_words(s);
  return u8_constants_bytes(s) + u8_limits_bytes(s) + filters;
}

// [block][word of taps][64 channels]
static void planes_pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                                void* packed) {
  u8_pack_constants(s, weights, thresholds, packed);
  uint32_t* filters = (uint32_t*)((char*)packed + u8_constants_bytes(s) + u8_limits_bytes(s));
  const int count = plane_words(s);
  __builtin_memset(filters, 0, sizeof(uint32_t) * block_count(s) * kChannelBlock * count);
  for_each_u8_weight(s, weights, [&](int channel, int tap, int weight) {
    const size_t word = (size_t)(channel / kChannelBlock) * count + tap / 32;
    filters[word * kChannelBlock + channel % kChannelBlock] |= (uint32_t)(weight > 0) << (tap % 32);
  });
}

/// planes[word][i] = bit i of 32 bytes of the window. Returns the sum of its bytes.
static inline int split_planes(const uint8_t* window, int taps, uint32_t (*planes)[8]) {
  int total = 0;
  for (int word = 0; word * 32 < taps; word++) {
    const int count = taps - word * 32 < 32 ? taps - word * 32 : 32;
    uint32_t bits[8] = {};
    for (int i = 0; i < count; i++) {
      const uint32_t x = window[word * 32 + i];
      total += (int)x;
      for (int plane = 0; plane < 8; plane++) bits[plane] |= (x >> plane & 1) << i;
    }
    for (int plane = 0; plane < 8; plane++) planes[word][plane] = bits[plane];
  }
  return total;
}

/// sum over planes of 2^i popcount(plane & filter): the sum of the bytes whose weight is +1.
PHONEBIT_INLINE IntVector positive_sum(const uint32_t (*planes)[8], const uint32_t* filters, int count) {
  IntVector sum = {};
  for (int word = 0; word < count; word++) {
    const WordVector filter = load<WordVector>(filters + (size_t)word * kChannelBlock);
    unroll<8>([&](int i) PHONEBIT_LAMBDA_INLINE {
      sum += count_ones((WordVector{} + planes[word][i]) & filter) << (int)i;
    });
  }
  return sum;
}

static void planes_run(const ConvShape& s, const void* packed, const uint8_t*, const void* scratch,
                       const OutputRange& range, const AccumulatorSink& sink) {
  const int count = plane_words(s);
  const uint32_t* all_filters =
      (const uint32_t*)((const char*)packed + u8_constants_bytes(s) + u8_limits_bytes(s));
  uint32_t planes[kPlaneWords][8];
  alignas(64) float values[kChannelBlock];
  for (int block = range.block_begin; block < range.block_end; block++) {
    const U8Block work(s, packed, scratch, sink, block);
    const uint32_t* filters = all_filters + (size_t)block * count * kChannelBlock;
    for_each_row_piece<1>(s, range, [&](int y, int x, int) {
      const int total = split_planes(work.window(y, x), work.taps, planes);
      const int32_t* limits = work.limits_of(y, x);
      uint64_t bits = 0;
      for (int c = 0; c < kChannelBlock; c += kLanes) {
        const IntVector sum = 2 * positive_sum(planes, filters + c, count) - total;
        bits |= (uint64_t)u8_threshold_bits(sum, limits + c) << c;
        store(values + c, u8_accumulator(sum, work.constants.multiplier, limits + c));
      }
      const int pixel = y * s.out_w + x;
      if (sink.threshold_bits) {
        work.store_bits(pixel, bits);
      } else {
        work.finish(values, pixel, 1);
      }
    });
  }
}

constexpr U8ConvKernel kU8ConvPlanes = {
    "u8conv_bitplanes", planes_support,  planes_packed_bytes, planes_pack_weights,
    u8_scratch_bytes,   u8_prepare_rows, u8_prepare_input,    1,
    planes_run,
};
