// Dot products by 32-bit lane, exact on every ISA: sum += w[0] x[0] + … + w[3] x[3], with weights and inputs
// from -127 to 127. A lane is an output channel; its weights meet inputs that are the same for all lanes: four
// bytes, or two numbers of 16 bits.
//
//   AVX-512 VNNI  vpdpbusd multiplies unsigned by signed bytes: inputs are stored as x + 128, and the packed
//                 constants take 128 sum(w) away again (kByteOffset).
//   AVX2          vpmaddwd multiplies and adds pairs of 16-bit numbers: inputs are stored as such, weights are
//                 extended when loaded. vpmaddubsw takes bytes, but also needs the signs moved to one side and
//                 a vpmaddwd that adds its pairs.
//   NEON          smull to 16 bits, sadalp of neighbours to 32.
//   others        even and odd bytes as 16-bit numbers; SSE2 multiplies and adds pairs of these.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after portable/intrinsics.h and kernel_types.h.
#pragma once

#include "simd.inl"
#include "weight_stream.inl"

/// What an input is stored as, and taps of a group: 32 bits.
#if defined(__AVX2__) && !defined(__AVX512F__)
using MapValue = int16_t;
#else
using MapValue = uint8_t;
#endif
constexpr int kGroupTaps = 4 / sizeof(MapValue);

#if defined(__AVX512F__)
constexpr int kByteOffset = 128;
#else
constexpr int kByteOffset = 0;
#endif

/// kLanes channels' weights of a group, in the form that the products want.
struct ByteWeights {
#if defined(__AVX512F__)
  __m512i weights;
#elif defined(__AVX2__)
  __m256i weights;
#elif defined(__aarch64__)
  int8x8_t low, high;
#elif defined(__SSE2__)
  __m128i even, odd;
#else
  IntVector weights;
#endif
};

/// The sums of kLanes channels.
struct ByteSums {
#if defined(__aarch64__)
  int32x4_t low, high;  // of two channels each: taps 0 and 1, taps 2 and 3
#else
  IntVector sums;
#endif
};

PHONEBIT_INLINE ByteWeights load_byte_weights(const int8_t* from) {
#if defined(__AVX512F__)
  return {_mm512_loadu_si512(from)};
#elif defined(__AVX2__)
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)from))};
#elif defined(__aarch64__)
  return {vld1_s8(from), vld1_s8(from + 8)};
#elif defined(__SSE2__)
  const __m128i weights = _mm_loadu_si128((const __m128i*)from);
  return {_mm_srai_epi16(_mm_slli_epi16(weights, 8), 8), _mm_srai_epi16(weights, 8)};
#else
  return {load<IntVector>(from)};
#endif
}

/// `from`: the inputs of a group, not aligned.
PHONEBIT_INLINE void add_byte_products(ByteSums& to, const ByteWeights& w, const MapValue* from) {
  int32_t word;
  __builtin_memcpy(&word, from, sizeof word);
#if defined(__AVX512F__)
  to.sums = (IntVector)_mm512_dpbusd_epi32((__m512i)to.sums, _mm512_set1_epi32(word), w.weights);
#elif defined(__AVX2__)
  to.sums += (IntVector)_mm256_madd_epi16(w.weights, _mm256_set1_epi32(word));
#elif defined(__aarch64__)
  const int8x8_t x = vreinterpret_s8_s32(vdup_n_s32(word));
  to.low = vpadalq_s16(to.low, vmull_s8(w.low, x));
  to.high = vpadalq_s16(to.high, vmull_s8(w.high, x));
#elif defined(__SSE2__)
  const __m128i x = _mm_set1_epi32(word);
  const __m128i even = _mm_srai_epi16(_mm_slli_epi16(x, 8), 8), odd = _mm_srai_epi16(x, 8);
  to.sums += (IntVector)_mm_add_epi32(_mm_madd_epi16(w.even, even), _mm_madd_epi16(w.odd, odd));
#else
  for (int shift = 24; shift >= 0; shift -= 8)
    to.sums +=
        ((IntVector)((WordVector)w.weights << shift) >> 24) * ((int32_t)((uint32_t)word << shift) >> 24);
#endif
}

PHONEBIT_INLINE IntVector whole_sums(const ByteSums& from) {
#if defined(__aarch64__)
  return (IntVector)vpaddq_s32(from.low, from.high);
#else
  return from.sums;
#endif
}

/// The sums of kPixels pixels x kVectors vectors of channels, in registers.
template <int kPixels, int kVectors>
struct ByteTileSums {
  ByteSums sums[kPixels][kVectors] = {};

  /// The sums begin with a number for each channel instead of 0.
  PHONEBIT_INLINE void start(const int32_t* numbers) {
    unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
      const IntVector number = load<IntVector>(numbers + j * kLanes);
      unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { sums[p][j] = {number}; });
    });
  }

  /// Adds the taps [begin, end) of each pixel; groups of weights lie `step` bytes apart. Returns the weights
  /// behind them.
  PHONEBIT_INLINE const int8_t* add_run(const MapValue* const (&from)[kPixels], size_t begin, size_t end,
                                        const int8_t* weights, size_t step) {
    constexpr int kGroupBytes = kVectors * kLanes * kGroupTaps;
    for (size_t i = begin; i < end; i += kGroupTaps) {
      if constexpr (kPixels == 4 && kVectors == 2) PHONEBIT_MCA_MARKER("begin byte_products 128 MAC");
      ByteWeights weight[kVectors];
      unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
        weight[j] = load_byte_weights(weights + j * kLanes * kGroupTaps);
      });
      if constexpr (kPixels == 1) ask_ahead < kGroupBytes<64 ? 64 : kGroupBytes>(weights);
      weights += step;
      unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
        unroll<kVectors>(
            [&](auto j) PHONEBIT_LAMBDA_INLINE { add_byte_products(sums[p][j], weight[j], from[p] + i); });
      });
      if constexpr (kPixels == 4 && kVectors == 2) PHONEBIT_MCA_MARKER("end byte_products");
    }
    return weights;
  }

  PHONEBIT_INLINE IntVector whole(int p, int j) const { return whole_sums(sums[p][j]); }
};
