// NEON, and outer products of bits in streaming mode: Apple M4, Arm C1 and later. Only binary convolutions differ from
// neon_i8mm/.
#include "isa_kernels.h"
#include "neon/hwcaps.h"

#if defined(__linux__) && !defined(HWCAP2_SME2)  // in headers since Linux 6.3
#define HWCAP2_SME2 (1ul << 37)
#endif

namespace phonebit::engine::cpu {

// SME2 includes BMOPA (ID_AA64SMFR0_EL1.BI32I32 is 1 wherever it is there). Linux lets every program use it.
static bool supported() {
  return PHONEBIT_HAS_HWCAP(AT_HWCAP2, HWCAP2_SME2, "hw.optional.arm.FEAT_SME2") &&
         PHONEBIT_HAS_HWCAP(AT_HWCAP2, HWCAP2_I8MM, "hw.optional.arm.FEAT_I8MM");
}

extern const Isa kSme2Isa = {kSme2Name,           "Advanced SIMD, 8-bit matrix products, SME2",
                             supported,           kBinaryConv_sme2,
                             kU8Conv_neon_i8mm,   &kI8Conv_neon_i8mm,
                             &kValueKernels_neon, &kResampling_neon};

}  // namespace phonebit::engine::cpu
