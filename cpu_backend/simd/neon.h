// Advanced SIMD: vectors of 16 bytes. On 32-bit Arm it takes subnormal floats for 0: there, files of float kernels are
// compiled without it, for VFP, and others see integers only.
#pragma once

#if !defined(__aarch64__)
#if defined(__ARM_NEON)
#include "neon_32.h"
#else
#include "scalar.h"
#endif
#else
#include <arm_neon.h>

#include "inline.h"

namespace phonebit::engine::cpu {
namespace {

constexpr int kVectorBytes = 16, kRegisters = 32, kStreamAheadBytes = 0;
constexpr bool kSmallCode = true;
#include "generic.inl"
constexpr RegisterTile kF32Tile = {4, 5}, kU8Tile = {4, 3};
constexpr RegisterTile kByteTile = {2, 4};  // 16 + 2 registers: sums are pairs of registers
using generic::broadcast, generic::load_partial, generic::store_partial, generic::load_bytes;
using generic::kFuses, generic::maximum, generic::minimum, generic::MapValue, generic::kByteOffset;
using generic::kPlusByte, generic::kMinusByte, generic::kFlushGroups;
using generic::spread_weights, generic::sum_pixels;

PHONEBIT_INLINE FloatVector load_halves(const uint16_t* from) {
  return (FloatVector)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
}
PHONEBIT_INLINE FloatVector multiply_add(FloatVector a, FloatVector b, FloatVector c) {
  return (FloatVector)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
PHONEBIT_INLINE FloatVector nearest_integer(FloatVector v) { return (FloatVector)vrndnq_f32((float32x4_t)v); }
PHONEBIT_INLINE uint32_t join_lanes(WordVector v) { return vaddvq_u32((uint32x4_t)v); }
#include "bits_by_lane.inl"

// smull to 16 bits, sadalp of neighbours to 32: of two channels each, taps 0 and 1, taps 2 and 3.
struct GroupWeights {
  int8x8_t low, high;
};
struct GroupSums {
  int32x4_t low, high;
};
PHONEBIT_INLINE GroupWeights load_group_weights(const int8_t* from) {
  return {vld1_s8(from), vld1_s8(from + 8)};
}
PHONEBIT_INLINE void add_group_products(GroupSums& to, const GroupWeights& w, int32_t inputs) {
  const int8x8_t x = vreinterpret_s8_s32(vdup_n_s32(inputs));
  to.low = vpadalq_s16(to.low, vmull_s8(w.low, x));
  to.high = vpadalq_s16(to.high, vmull_s8(w.high, x));
}
PHONEBIT_INLINE IntVector group_sums(const GroupSums& from) {
  return (IntVector)vpaddq_s32(from.low, from.high);
}
#include "neon_integers.inl"

}  // namespace
}  // namespace phonebit::engine::cpu
#endif
