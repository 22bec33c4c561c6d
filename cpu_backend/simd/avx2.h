// AVX2, FMA and F16C: vectors of 32 bytes.
#pragma once

#include "x86.h"

namespace phonebit::engine::cpu {
namespace {

constexpr int kVectorBytes = 32, kRegisters = 16;
#include "generic.inl"
constexpr RegisterTile kF32Tile = {2, 6}, kU8Tile = {4, 2};
constexpr RegisterTile kByteTile = {2, 6};  // 12 + 2 registers, one for inputs
using generic::kFuses, generic::count_ones, generic::load_partial, generic::store_partial;

PHONEBIT_INLINE FloatVector broadcast(float x) { return _mm256_set1_ps(x); }

PHONEBIT_INLINE FloatVector load_bytes(const int8_t* from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)from)));
}
PHONEBIT_INLINE FloatVector load_halves(const uint16_t* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)from));
}

PHONEBIT_INLINE FloatVector multiply_add(FloatVector a, FloatVector b, FloatVector c) {
  return _mm256_fmadd_ps(a, b, c);
}
PHONEBIT_INLINE FloatVector maximum(FloatVector a, FloatVector b) { return _mm256_max_ps(a, b); }
PHONEBIT_INLINE FloatVector minimum(FloatVector a, FloatVector b) { return _mm256_min_ps(a, b); }
PHONEBIT_INLINE FloatVector nearest_integer(FloatVector v) {
  return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

PHONEBIT_INLINE IntVector load_levels(const uint8_t* from) {
  return (IntVector)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)from));
}
PHONEBIT_INLINE void store_levels(uint8_t* to, IntVector v) {
  const __m128i low = _mm256_castsi256_si128((__m256i)v), high = _mm256_extracti128_si256((__m256i)v, 1);
  const __m128i shorts = _mm_packs_epi32(low, high);
  _mm_storel_epi64((__m128i*)to, _mm_packus_epi16(shorts, shorts));
}
PHONEBIT_INLINE IntVector spread_weights(const int32_t* from) {
  const __m256i pair = _mm256_castsi128_si256(_mm_loadl_epi64((const __m128i*)from));
  return (IntVector)_mm256_permutevar8x32_epi32(pair, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}
PHONEBIT_INLINE PixelVector sum_pixels(IntVector v) {
  return (PixelVector)_mm_add_epi32(_mm256_castsi256_si128((__m256i)v),
                                    _mm256_extracti128_si256((__m256i)v, 1));
}

PHONEBIT_INLINE uint32_t greater_equal_bits(FloatVector v, FloatVector t) {
  return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(v, t, _CMP_GE_OQ));
}
PHONEBIT_INLINE uint32_t greater_equal_bits(IntVector v, IntVector t) {
  const __m256i less = _mm256_cmpgt_epi32((__m256i)t, (__m256i)v);
  return 0xff ^ (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(less));
}
#include "bits_by_vector.inl"

// vpmaddwd multiplies and adds pairs of 16-bit numbers: inputs are stored as such, weights are extended when
// loaded. vpmaddubsw multiplies bytes, but also needs the signs moved to one side and a vpmaddwd that adds its pairs.
using MapValue = int16_t;
constexpr int kByteOffset = 0;
struct GroupWeights {
  __m256i weights;
};
using generic::GroupSums, generic::group_sums;
PHONEBIT_INLINE GroupWeights load_group_weights(const int8_t* from) {
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)from))};
}
PHONEBIT_INLINE void add_group_products(GroupSums& to, const GroupWeights& w, int32_t inputs) {
  to.sums += (IntVector)_mm256_madd_epi16(w.weights, _mm256_set1_epi32(inputs));
}

// vpmaddubsw adds pairs to 16 signed bits: two taps of 255 per group, 64 * 510 = 32640.
constexpr int kPlusByte = 1, kMinusByte = -1, kFlushGroups = 64;
using generic::U8VectorSum;
PHONEBIT_INLINE U8VectorSum add_products(U8VectorSum sum, WordVector x, WordVector weight) {
  return (WordVector)_mm256_add_epi16((__m256i)sum, _mm256_maddubs_epi16((__m256i)x, (__m256i)weight));
}
PHONEBIT_INLINE IntVector whole_sums(U8VectorSum sum) {
  return (IntVector)_mm256_madd_epi16((__m256i)sum, _mm256_set1_epi16(1));
}

}  // namespace
}  // namespace phonebit::engine::cpu
