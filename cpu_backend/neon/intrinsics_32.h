// AArch64's operations on whole registers that 32-bit Arm has on halves only, under the names of AArch64.
#pragma once

#include "portable/intrinsics.h"

#if defined(__arm__)
namespace phonebit::engine::cpu {

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

}  // namespace phonebit::engine::cpu
#endif
