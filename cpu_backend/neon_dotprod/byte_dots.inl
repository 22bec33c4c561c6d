// Register tile of byte products by SDOT: a lane is an output channel, sum[c] += w[c][0] x[0] + ... + w[c][3]
// x[3]. One load of 16 taps of a pixel supplies four groups, which SDOT selects by element.
//
// Weights: [group of kDotTaps taps][channel][kDotTaps]. Those of a last group that lie beyond its run are 0,
// so that it does not matter what is read there.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

constexpr int kDotTaps = 4;

/// Sums of kPixels pixels x kVectors vectors of four channels, of signed bytes.
template <int kPixels, int kVectors>
struct DotTile {
  int32x4_t sums[kPixels][kVectors] = {};

  /// Adds the taps [begin, end) of each pixel; groups of weights lie `step` bytes apart. Returns the weights
  /// after them.
  PHONEBIT_INLINE const int8_t* add_run(const uint8_t* const (&from)[kPixels], size_t begin, size_t end,
                                        const int8_t* weights, size_t step) {
    constexpr int kLoadTaps = 16;
    size_t i = begin;
    for (; i + kLoadTaps <= end; i += kLoadTaps) {
      if constexpr (kPixels == 4 && kVectors == 4) PHONEBIT_MCA_MARKER("begin dot_products 1024 MAC");
      int8x16_t x[kPixels];
      unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { x[p] = vld1q_s8((const int8_t*)from[p] + i); });
      unroll<kLoadTaps / kDotTaps>([&](auto group) PHONEBIT_LAMBDA_INLINE {
        unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
          const int8x16_t w = vld1q_s8(weights + j * 16);
          unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
            sums[p][j] = vdotq_laneq_s32(sums[p][j], w, x[p], group);
          });
        });
        weights += step;
      });
      if constexpr (kPixels == 4 && kVectors == 4) PHONEBIT_MCA_MARKER("end dot_products");
    }
    for (; i < end; i += kDotTaps, weights += step) {
      unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
        int32_t taps;
        __builtin_memcpy(&taps, from[p] + i, sizeof taps);
        const int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(taps));
        unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
          sums[p][j] = vdotq_s32(sums[p][j], vld1q_s8(weights + j * 16), x);
        });
      });
    }
    return weights;
  }

  PHONEBIT_INLINE IntVector whole(int p, int j) const { return (IntVector)sums[p][j]; }
};
