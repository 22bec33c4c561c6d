// Register tile of byte products by SMMLA: rows of eight taps, two pixels times two channels, twice the
// products of an SDOT. Loads of 16 taps of two pixels become two operands: their first and their second
// halves. A pixel without a partner is its own.
//
// Weights: [group of kDotTaps taps][channel][kDotTaps]. Those of a last group that lie beyond its run are 0,
// so that it does not matter what is read there.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

constexpr int kDotTaps = 8;

/// Sums of kPixels pixels x kVectors vectors of four channels, of signed bytes.
template <int kPixels, int kVectors>
struct DotTile {
  static constexpr int kPairs = (kPixels + 1) / 2;
  /// Of a pair of pixels: {first pixel's, second pixel's} sums of channels 0 and 1, and of 2 and 3.
  int32x4_t sums[kPairs][kVectors][2] = {};

  /// Adds the taps [begin, end) of each pixel; groups of weights lie `step` bytes apart. Returns the weights
  /// after them.
  PHONEBIT_INLINE const int8_t* add_run(const uint8_t* const (&from)[kPixels], size_t begin, size_t end,
                                        const int8_t* weights, size_t step) {
    constexpr int kLoadTaps = 16;
    const auto pixel = [&](int p) PHONEBIT_LAMBDA_INLINE {
      return (const int8_t*)from[p < kPixels ? p : kPixels - 1];
    };
    size_t i = begin;
    for (; i + kLoadTaps <= end; i += kLoadTaps) {
      if constexpr (kPixels == 4 && kVectors == 4) PHONEBIT_MCA_MARKER("begin matrix_products 1024 MAC");
      int8x16_t halves[2][kPairs];
      unroll<kPairs>([&](auto r) PHONEBIT_LAMBDA_INLINE {
        const int64x2_t a = vreinterpretq_s64_s8(vld1q_s8(pixel(2 * r) + i));
        const int64x2_t b = vreinterpretq_s64_s8(vld1q_s8(pixel(2 * r + 1) + i));
        halves[0][r] = vreinterpretq_s8_s64(vzip1q_s64(a, b));
        halves[1][r] = vreinterpretq_s8_s64(vzip2q_s64(a, b));
      });
      add_group(halves[0], weights);
      add_group(halves[1], weights + step);
      weights += 2 * step;
      if constexpr (kPixels == 4 && kVectors == 4) PHONEBIT_MCA_MARKER("end matrix_products");
    }
    for (; i < end; i += kDotTaps, weights += step) {
      int8x16_t x[kPairs];
      unroll<kPairs>([&](auto r) PHONEBIT_LAMBDA_INLINE {
        x[r] = vcombine_s8(vld1_s8(pixel(2 * r) + i), vld1_s8(pixel(2 * r + 1) + i));
      });
      add_group(x, weights);
    }
    return weights;
  }

  PHONEBIT_INLINE IntVector whole(int p, int j) const {
    const int64x2_t first = vreinterpretq_s64_s32(sums[p / 2][j][0]);
    const int64x2_t second = vreinterpretq_s64_s32(sums[p / 2][j][1]);
    return (IntVector)(p % 2 == 0 ? vzip1q_s64(first, second) : vzip2q_s64(first, second));
  }

 private:
  PHONEBIT_INLINE void add_group(const int8x16_t (&x)[kPairs], const int8_t* weights) {
    unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
      unroll<2>([&](auto half) PHONEBIT_LAMBDA_INLINE {
        const int8x16_t w = vld1q_s8(weights + 32 * j + 16 * half);
        unroll<kPairs>(
            [&](auto r) PHONEBIT_LAMBDA_INLINE { sums[r][j][half] = vmmlaq_s32(sums[r][j][half], x[r], w); });
      });
    });
  }
};
