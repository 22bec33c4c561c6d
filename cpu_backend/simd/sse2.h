// What every x86-64 processor has: vectors of 16 bytes, no fused multiply-add.
#pragma once

#include "x86.h"

namespace phonebit::engine::cpu {
namespace {

constexpr int kVectorBytes = 16, kRegisters = 16;
#include "generic.inl"
constexpr RegisterTile kF32Tile = {2, 6}, kU8Tile = {2, 2};
constexpr RegisterTile kByteTile = {2, 2};  // 4 + 4 registers
using generic::add_products, generic::U8VectorSum, generic::whole_sums;
using generic::broadcast, generic::load_partial, generic::store_partial, generic::load_bytes,
    generic::load_halves;
using generic::GroupSums, generic::group_sums, generic::MapValue;
using generic::kByteOffset, generic::kPlusByte, generic::kMinusByte, generic::kFlushGroups;
using generic::kFuses, generic::count_ones, generic::multiply_add, generic::nearest_integer;
using generic::spread_weights, generic::sum_pixels;

PHONEBIT_INLINE FloatVector maximum(FloatVector a, FloatVector b) { return _mm_max_ps(a, b); }
PHONEBIT_INLINE FloatVector minimum(FloatVector a, FloatVector b) { return _mm_min_ps(a, b); }

PHONEBIT_INLINE IntVector load_levels(const uint8_t* from) {
  int32_t levels;
  __builtin_memcpy(&levels, from, sizeof levels);
  const __m128i zero = _mm_setzero_si128();
  return (IntVector)_mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(levels), zero), zero);
}
PHONEBIT_INLINE void store_levels(uint8_t* to, IntVector v) { store_pixel(to, v); }

PHONEBIT_INLINE uint32_t greater_equal_bits(FloatVector v, FloatVector t) {
  return (uint32_t)_mm_movemask_ps(_mm_cmpge_ps(v, t));
}
PHONEBIT_INLINE uint32_t greater_equal_bits(IntVector v, IntVector t) {
  const __m128i less = _mm_cmpgt_epi32((__m128i)t, (__m128i)v);
  return 0xf ^ (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(less));
}
#include "bits_by_vector.inl"

// Even and odd bytes as 16-bit numbers, pairs of which are multiplied and added.
struct GroupWeights {
  __m128i even, odd;
};
PHONEBIT_INLINE GroupWeights load_group_weights(const int8_t* from) {
  const __m128i weights = _mm_loadu_si128((const __m128i*)from);
  return {_mm_srai_epi16(_mm_slli_epi16(weights, 8), 8), _mm_srai_epi16(weights, 8)};
}
PHONEBIT_INLINE void add_group_products(GroupSums& to, const GroupWeights& w, int32_t inputs) {
  const __m128i x = _mm_set1_epi32(inputs);
  const __m128i even = _mm_srai_epi16(_mm_slli_epi16(x, 8), 8), odd = _mm_srai_epi16(x, 8);
  to.sums += (IntVector)_mm_add_epi32(_mm_madd_epi16(w.even, even), _mm_madd_epi16(w.odd, odd));
}

}  // namespace
}  // namespace phonebit::engine::cpu
