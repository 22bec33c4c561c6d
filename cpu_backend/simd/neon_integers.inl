// Primitives of integers that 32-bit and 64-bit Arm have in common.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after vectors.inl.
#pragma once

PHONEBIT_INLINE IntVector count_ones(WordVector v) {
  return (IntVector)vpaddlq_u16(vpaddlq_u8(vcntq_u8((uint8x16_t)v)));
}

// The type is that of the operation that adds: gcc copies registers whose type changes.
typedef uint16x8_t U8VectorSum;
PHONEBIT_INLINE U8VectorSum add_products(U8VectorSum sum, WordVector x, WordVector weight) {
  return vpadalq_u8(sum, (uint8x16_t)(x & weight));
}
PHONEBIT_INLINE IntVector whole_sums(U8VectorSum sum) { return (IntVector)vpaddlq_u16(sum); }
