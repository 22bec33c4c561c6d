// AVX-512 F/BW/DQ/VL, VNNI and VPOPCNTDQ: vectors of 64 bytes.
#pragma once

#include "x86.h"

namespace phonebit::engine::cpu {
namespace {

constexpr int kVectorBytes = 64, kRegisters = 32;
#include "vectors.inl"
constexpr RegisterTile kF32Tile = {4, 6}, kU8Tile = {4, 5};
constexpr RegisterTile kByteTile = {4, 6};  // 24 + 4 registers, one for inputs

PHONEBIT_INLINE FloatVector broadcast(float x) { return _mm512_set1_ps(x); }

PHONEBIT_INLINE FloatVector load_partial(const float* from, int count) {
  return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), from);
}
PHONEBIT_INLINE void store_partial(float* to, FloatVector v, int count) {
  _mm512_mask_storeu_ps(to, (__mmask16)((1u << count) - 1), v);
}

PHONEBIT_INLINE FloatVector load_bytes(const int8_t* from) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)from)));
}
PHONEBIT_INLINE FloatVector load_halves(const uint16_t* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)from));
}

constexpr bool kFuses = true;
PHONEBIT_INLINE FloatVector multiply_add(FloatVector a, FloatVector b, FloatVector c) {
  return _mm512_fmadd_ps(a, b, c);
}
PHONEBIT_INLINE FloatVector maximum(FloatVector a, FloatVector b) { return _mm512_max_ps(a, b); }
PHONEBIT_INLINE FloatVector minimum(FloatVector a, FloatVector b) { return _mm512_min_ps(a, b); }
PHONEBIT_INLINE FloatVector nearest_integer(FloatVector v) {
  return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

PHONEBIT_INLINE IntVector load_levels(const uint8_t* from) {
  return (IntVector)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)from));
}
PHONEBIT_INLINE void store_levels(uint8_t* to, IntVector v) {
  const __m512i levels = _mm512_max_epi32((__m512i)v, _mm512_setzero_si512());
  _mm_storeu_si128((__m128i*)to, _mm512_cvtusepi32_epi8(levels));
}
PHONEBIT_INLINE IntVector spread_weights(const int32_t* from) {
  const __m512i four = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i*)from));
  return (IntVector)_mm512_permutexvar_epi32(
      _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3), four);
}
PHONEBIT_INLINE PixelVector sum_pixels(IntVector v) {
  const __m256i pairs =
      _mm256_add_epi32(_mm512_castsi512_si256((__m512i)v), _mm512_extracti64x4_epi64((__m512i)v, 1));
  return (PixelVector)_mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
}

PHONEBIT_INLINE uint32_t greater_equal_bits(FloatVector v, FloatVector t) {
  return _mm512_cmp_ps_mask(v, t, _CMP_GE_OQ);
}
PHONEBIT_INLINE uint32_t greater_equal_bits(IntVector v, IntVector t) {
  return _mm512_cmpge_epi32_mask((__m512i)v, (__m512i)t);
}
#include "bits_by_vector.inl"

PHONEBIT_INLINE IntVector count_ones(WordVector v) { return (IntVector)_mm512_popcnt_epi32((__m512i)v); }

// vpdpbusd multiplies unsigned by signed bytes: inputs are stored as x + 128.
using MapValue = uint8_t;
constexpr int kByteOffset = 128;
struct GroupWeights {
  __m512i weights;
};
struct GroupSums {
  IntVector sums;
};
PHONEBIT_INLINE GroupWeights load_group_weights(const int8_t* from) { return {_mm512_loadu_si512(from)}; }
PHONEBIT_INLINE void add_group_products(GroupSums& to, const GroupWeights& w, int32_t inputs) {
  to.sums = (IntVector)_mm512_dpbusd_epi32((__m512i)to.sums, _mm512_set1_epi32(inputs), w.weights);
}
PHONEBIT_INLINE IntVector group_sums(const GroupSums& from) { return from.sums; }

// 32-bit sums never overflow where the accumulator itself does not.
constexpr int kPlusByte = 1, kMinusByte = -1, kFlushGroups = kU8NoFlush;
typedef WordVector U8VectorSum;
PHONEBIT_INLINE U8VectorSum add_products(U8VectorSum sum, WordVector x, WordVector weight) {
  return (WordVector)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)weight);
}
PHONEBIT_INLINE IntVector whole_sums(U8VectorSum sum) { return (IntVector)sum; }

}  // namespace
}  // namespace phonebit::engine::cpu
