// Primitives of integers that 32-bit and 64-bit Arm have in common.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after vectors.inl.
#pragma once

PHONEBIT_INLINE IntVector count_ones(WordVector v) {
  return (IntVector)vpaddlq_u16(vpaddlq_u8(vcntq_u8((uint8x16_t)v)));
}

PHONEBIT_INLINE IntVector load_levels(const uint8_t* from) {
  uint32_t levels;
  __builtin_memcpy(&levels, from, sizeof levels);
  const uint16x8_t shorts = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(levels)));
  return (IntVector)vmovl_u16(vget_low_u16(shorts));
}
PHONEBIT_INLINE void store_pixel(uint8_t* to, PixelVector v) {
  const uint16x4_t shorts = vqmovun_s32((int32x4_t)v);
  const uint32_t levels = vget_lane_u32(vreinterpret_u32_u8(vqmovn_u16(vcombine_u16(shorts, shorts))), 0);
  __builtin_memcpy(to, &levels, sizeof levels);
}
PHONEBIT_INLINE void store_levels(uint8_t* to, IntVector v) { store_pixel(to, v); }

// The type is that of the operation that adds: gcc copies registers whose type changes.
typedef uint16x8_t U8VectorSum;
PHONEBIT_INLINE U8VectorSum add_products(U8VectorSum sum, WordVector x, WordVector weight) {
  return vpadalq_u8(sum, (uint8x16_t)(x & weight));
}
PHONEBIT_INLINE IntVector whole_sums(U8VectorSum sum) { return (IntVector)vpaddlq_u16(sum); }
