// Dot products by 32-bit lane, exact on every ISA: sum += w[0] x[0] + … + w[3] x[3], with weights and inputs
// from -127 to 127. A lane is an output channel; its weights are multiplied by inputs that are the same for all lanes:
// four bytes, or two numbers of 16 bits. See load_group_weights and add_group_products of simd/<isa>.h.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "weight_stream.inl"

constexpr int kByteVectors = kByteTile.vectors, kBytePixels = kByteTile.pixels;
/// Taps of a group: 32 bits.
constexpr int kGroupTaps = 4 / sizeof(MapValue);

/// The sums of kPixels pixels x kVectors vectors of channels, in registers.
template <int kPixels, int kVectors>
struct ByteTileSums {
  GroupSums sums[kPixels][kVectors] = {};

  /// The sums begin with a number for each channel instead of 0.
  PHONEBIT_INLINE void start(const int32_t* numbers) {
    unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE {
      const IntVector number = load<IntVector>(numbers + j * kLanes);
      unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { sums[p][j] = {number}; });
    });
  }

  /// Adds the taps [begin, end) of each pixel; groups of weights lie `step` bytes apart. Returns the weights
  /// after them.
  PHONEBIT_INLINE const int8_t* add_run(const MapValue* const (&from)[kPixels], size_t begin, size_t end,
                                        const int8_t* weights, size_t step) {
    constexpr int kGroupBytes = kVectors * kLanes * kGroupTaps;
    for (size_t i = begin; i < end; i += kGroupTaps) {
      if constexpr (kPixels == 4 && kVectors == 2) PHONEBIT_MCA_MARKER("begin byte_products 128 MAC");
      GroupWeights weight[kVectors];
      unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE {
        weight[j] = load_group_weights(weights + j * kLanes * kGroupTaps);
      });
      if constexpr (kPixels == 1) ask_ahead < kGroupBytes<64 ? 64 : kGroupBytes>(weights);
      weights += step;
      unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
        int32_t inputs;  // not aligned
        __builtin_memcpy(&inputs, from[p] + i, sizeof inputs);
        unroll<kVectors>([&](int j)
                             PHONEBIT_LAMBDA_INLINE { add_group_products(sums[p][j], weight[j], inputs); });
      });
      if constexpr (kPixels == 4 && kVectors == 2) PHONEBIT_MCA_MARKER("end byte_products");
    }
    return weights;
  }

  PHONEBIT_INLINE IntVector whole(int p, int j) const { return group_sums(sums[p][j]); }
};
