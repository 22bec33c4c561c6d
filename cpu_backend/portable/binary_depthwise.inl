// Depthwise convolution of packed bits: windows counted channel by channel.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "bit_lanes.inl"
#include "epilogue.inl"
#include "pieces.inl"
#include "whole_columns.inl"

/// body(0) … body(kPlanes - 1), as a loop where only huge windows need that many.
template <int kPlanes, class Body>
PHONEBIT_INLINE void for_each_plane(const Body& body) {
  if constexpr (kPlanes <= 8) {
    unroll<kPlanes>(body);
  } else {
#pragma GCC unroll 1
    for (int i = 0; i < kPlanes; i++) body(i);
  }
}

/// Counters for 64 channels, bit-sliced: plane i holds bit i of every channel's count. They count to
/// 2^kPlanes - 1.
template <int kPlanes>
struct BitCounters {
  uint64_t planes[kPlanes] = {};

  /// Adds 0 or 1 to every counter: a ripple of half adders.
  PHONEBIT_INLINE void add(uint64_t carry) {
    for_each_plane<kPlanes>([&](int i) PHONEBIT_LAMBDA_INLINE {
      const uint64_t sum = planes[i] ^ carry;
      carry &= planes[i];
      planes[i] = sum;
    });
  }
};

/// Limits for 64 channels in the same form: bit = count < limit, compared for all channels at once.
template <int kPlanes>
struct BitLimits {
  uint64_t planes[kPlanes] = {};
  uint64_t always = 0;  // channels whose limit is above every count
  int for_taps = -1;    // the window size that they were made for

  void make(int taps, const int32_t* thresholds, int channels) {
    for_taps = taps;
    always = 0;
    for (uint64_t& plane : planes) plane = 0;
    for (int c = 0; c < channels; c++) {
      // acc = taps - 2 count >= T  <=>  count < floor((taps - T) / 2) + 1
      const uint32_t limit = popcount_limit(taps, thresholds[c], (uint32_t)taps + 1);
      if (limit == (uint32_t)taps + 1) always |= 1ull << c;
      for (int i = 0; i < kPlanes; i++) planes[i] |= (uint64_t)(limit >> i & 1) << c;
    }
  }
  uint64_t below(const BitCounters<kPlanes>& counters) const {
    uint64_t less = 0;
    for_each_plane<kPlanes>([&](int i) PHONEBIT_LAMBDA_INLINE {
      less = (~counters.planes[i] & planes[i]) | (~(counters.planes[i] ^ planes[i]) & less);
    });
    return less | always;
  }
};

/// The words of channels [32 * word, 32 * word + 64) of one pixel; the second is 0 beyond the last.
PHONEBIT_INLINE uint64_t load_pair(const uint32_t* pixel, int word, int count) {
  if (word + 1 < count) return load<uint64_t>(pixel + word);
  return pixel[word];
}

/// 64 channels of a depthwise layer.
struct BinaryDepthwiseBlock {
  const ConvShape& s;
  const uint32_t* weights;
  const uint32_t* input;
  int count, word;  // words of a pixel; the block's first one
  const Stop& stop;

  /// Counts the taps where input and weight differ; returns the number of taps that count: for pad_value 0
  /// those inside the map. Ends early, with any counts, when it is to stop in a large window.
  template <int kPlanes>
  PHONEBIT_INLINE int differences(int y, TapSpan rows, int x, TapSpan columns,
                                  BitCounters<kPlanes>* counters) const {
    const uint64_t padding = s.pad_value > 0 ? ~0ull : 0;
    const bool skip_padding = s.pad_value == 0;
    BitCounters<kPlanes> sums;
    int taps = 0;
    Pieces pieces(stop);
    const uint32_t* weight = weights;
    for (int ky = 0; ky < s.kernel_h; ky++) {
      const bool row_inside = ky >= rows.begin && ky < rows.end;
      const int64_t in_y = y * s.stride_h - s.pad_top + ky * s.dilation_h;
      const uint32_t* pixel = input + (in_y * s.in_w + x * s.stride_w - s.pad_left) * count;
      for (int kx = 0; kx < s.kernel_w; kx++, weight += count, pixel += s.dilation_w * count) {
        const bool inside = row_inside && kx >= columns.begin && kx < columns.end;
        if (!inside && skip_padding) continue;
        sums.add((inside ? load_pair(pixel, word, count) : padding) ^ load_pair(weight, word, count));
        taps++;
      }
      if constexpr (kPlanes > 8) {
        if (pieces.is_end_after((int64_t)s.kernel_w * kPlanes)) break;
      }
    }
    *counters = sums;
    return taps;
  }
};

/// acc of `channels` <= 64 channels as floats.
template <int kPlanes>
static inline void expand_counts(const BitCounters<kPlanes>& counters, int taps, int channels, float* out) {
  for (int first = 0; first < channels; first += kLanes) {
    IntVector count = {};
    for_each_plane<kPlanes>([&](int i) PHONEBIT_LAMBDA_INLINE {
      const uint32_t half = (uint32_t)(counters.planes[i] >> (first & 32));
      count += lanes_of_bits(half, first & 31) & (1 << i);
    });
    store(out + first, __builtin_convertvector(taps - 2 * count, FloatVector));
  }
}

template <int kPlanes>
static void binary_depthwise_planes(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                                    const uint32_t* input, int row_begin, int row_end,
                                    const AccumulatorSink& sink, const Stop& stop) {
  constexpr int kPixels = 16;
  const int64_t window = (int64_t)s.kernel_h * s.kernel_w * kPlanes;
  Pieces pieces(stop);
  const TapSpan whole = whole_columns(s);
  alignas(64) float tile[kPixels * kChannelBlock];
  BitCounters<kPlanes> counters;
  for (int channel0 = 0; channel0 < s.in_c; channel0 += kChannelBlock) {
    const BinaryDepthwiseBlock block = {s, weights, input, words(s.in_c), channel0 / 32, stop};
    const int channels = s.in_c - channel0 < kChannelBlock ? s.in_c - channel0 : kChannelBlock;
    BitLimits<kPlanes> limits;
    for (int y = row_begin; y < row_end; y++) {
      const TapSpan rows = row_span(s, y);
      for (int x = 0; x < s.out_w; x++) {
        if (pieces.is_end_after(window)) return;
        const int taps = block.differences(y, rows, x, column_taps(s, whole, x), &counters);
        if (sink.threshold_bits) {
          if (limits.for_taps != taps) limits.make(taps, thresholds + channel0, channels);
          uint64_t bits = limits.below(counters);
          if (channels < 64) bits &= (1ull << channels) - 1;
          uint32_t* out = sink.threshold_bits + ((int64_t)y * s.out_w + x) * sink.pixel_words + block.word;
          out[0] = (uint32_t)bits;
          if (channels > 32) out[1] = (uint32_t)(bits >> 32);
          continue;
        }
        const int p = x % kPixels;
        expand_counts(counters, taps, channels, tile + p * kChannelBlock);
        if (p == kPixels - 1 || x == s.out_w - 1)
          apply_epilogue(*sink.epilogue, tile, y * s.out_w + x - p, p + 1, channel0, channels);
      }
    }
  }
}

static void binary_depthwise(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                             const uint32_t* input, int row_begin, int row_end, const AccumulatorSink& sink,
                             const Stop& stop) {
  const int64_t taps = (int64_t)s.kernel_h * s.kernel_w;
  const auto planes = taps < 16    ? binary_depthwise_planes<4>
                      : taps < 256 ? binary_depthwise_planes<8>
                                   : binary_depthwise_planes<24>;
  planes(s, weights, thresholds, input, row_begin, row_end, sink, stop);
}
