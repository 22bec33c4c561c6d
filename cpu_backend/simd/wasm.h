// WebAssembly with SIMD: vectors of 16 bytes, no fused multiply-add.
#pragma once

#include <wasm_simd128.h>

#include "inline.h"

namespace phonebit::engine::cpu {
namespace {

constexpr int kVectorBytes = 16, kRegisters = 16, kStreamAheadBytes = 0;
constexpr bool kSmallCode = true;
#include "generic.inl"
constexpr RegisterTile kF32Tile = {2, 6}, kU8Tile = {2, 3};
constexpr RegisterTile kByteTile = {2, 4};  // 8 + 2 registers, one for inputs
constexpr bool kFuses = false;
using generic::broadcast, generic::load_partial, generic::store_partial, generic::load_bytes,
    generic::load_halves;
using generic::GroupSums, generic::group_sums, generic::kByteOffset;
using generic::kPlusByte, generic::kMinusByte, generic::kFlushGroups;
using generic::load_levels, generic::store_levels, generic::store_pixel, generic::spread_weights,
    generic::sum_pixels;

PHONEBIT_INLINE FloatVector multiply_add(FloatVector a, FloatVector b, FloatVector c) { return a * b + c; }
// The instructions return their first operand where either is a NaN.
PHONEBIT_INLINE FloatVector maximum(FloatVector a, FloatVector b) {
  return (FloatVector)wasm_f32x4_pmax((v128_t)b, (v128_t)a);
}
PHONEBIT_INLINE FloatVector minimum(FloatVector a, FloatVector b) {
  return (FloatVector)wasm_f32x4_pmin((v128_t)b, (v128_t)a);
}
PHONEBIT_INLINE FloatVector nearest_integer(FloatVector v) {
  return (FloatVector)wasm_f32x4_nearest((v128_t)v);
}

PHONEBIT_INLINE uint32_t greater_equal_bits(FloatVector v, FloatVector t) {
  return wasm_i32x4_bitmask(wasm_f32x4_ge((v128_t)v, (v128_t)t));
}
PHONEBIT_INLINE uint32_t greater_equal_bits(IntVector v, IntVector t) {
  return wasm_i32x4_bitmask(wasm_i32x4_ge((v128_t)v, (v128_t)t));
}
#include "bits_by_vector.inl"

PHONEBIT_INLINE IntVector count_ones(WordVector v) {
  const v128_t pairs = wasm_u16x8_extadd_pairwise_u8x16(wasm_i8x16_popcnt((v128_t)v));
  return (IntVector)wasm_u32x4_extadd_pairwise_u16x8(pairs);
}

// The dot product of pairs takes 16-bit numbers: inputs are stored as such, weights are extended when loaded.
using MapValue = int16_t;
struct GroupWeights {
  v128_t weights;
};
PHONEBIT_INLINE GroupWeights load_group_weights(const int8_t* from) { return {wasm_i16x8_load8x8(from)}; }
PHONEBIT_INLINE void add_group_products(GroupSums& to, const GroupWeights& w, int32_t inputs) {
  to.sums += (IntVector)wasm_i32x4_dot_i16x8(w.weights, wasm_i32x4_splat(inputs));
}

using generic::U8VectorSum;
PHONEBIT_INLINE U8VectorSum add_products(U8VectorSum sum, WordVector x, WordVector weight) {
  return (U8VectorSum)wasm_i16x8_add((v128_t)sum, wasm_u16x8_extadd_pairwise_u8x16((v128_t)(x & weight)));
}
PHONEBIT_INLINE IntVector whole_sums(U8VectorSum sum) {
  return (IntVector)wasm_u32x4_extadd_pairwise_u16x8((v128_t)sum);
}

}  // namespace
}  // namespace phonebit::engine::cpu
