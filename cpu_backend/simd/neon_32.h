// NEON of 32-bit Arm, as far as kernels of integers use it.
#pragma once

#include <arm_neon.h>

#include "inline.h"

namespace phonebit::engine::cpu {
namespace {

constexpr int kVectorBytes = 16, kRegisters = 16, kStreamAheadBytes = 0;
constexpr bool kSmallCode = true;
#include "generic.inl"
constexpr RegisterTile kU8Tile = {4, 2};
using generic::broadcast, generic::join_lanes;
using generic::kPlusByte, generic::kMinusByte, generic::kFlushGroups;
using generic::spread_weights, generic::sum_pixels;
#include "bits_by_lane.inl"
#include "neon_integers.inl"

// AArch64's operations on whole registers that 32-bit Arm has on halves only, under the names of AArch64.

/// Sums of neighbours: first a's, then b's.
PHONEBIT_INLINE uint8x16_t vpaddq_u8(uint8x16_t a, uint8x16_t b) {
  return vcombine_u8(vpadd_u8(vget_low_u8(a), vget_high_u8(a)), vpadd_u8(vget_low_u8(b), vget_high_u8(b)));
}

/// The even lanes: first a's, then b's.
PHONEBIT_INLINE uint8x16_t vuzp1q_u8(uint8x16_t a, uint8x16_t b) { return vuzpq_u8(a, b).val[0]; }
PHONEBIT_INLINE uint16x8_t vuzp1q_u16(uint16x8_t a, uint16x8_t b) { return vuzpq_u16(a, b).val[0]; }

PHONEBIT_INLINE uint16x8_t vaddw_high_u8(uint16x8_t a, uint8x16_t b) { return vaddw_u8(a, vget_high_u8(b)); }

PHONEBIT_INLINE uint32x4_t vmlsl_high_n_u16(uint32x4_t a, uint16x8_t b, uint16_t factor) {
  return vmlsl_n_u16(a, vget_high_u16(b), factor);
}

}  // namespace
}  // namespace phonebit::engine::cpu
