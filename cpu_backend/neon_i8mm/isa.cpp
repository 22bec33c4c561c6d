// NEON with products of matrices of bytes: Cortex-A510, A710, X2, Neoverse V1 and later. Only layers of bytes
// differ from neon/.
#include "isa_kernels.h"
#include "neon/hwcaps.h"

namespace phonebit::engine::cpu {

static bool supported() { return PHONEBIT_HAS_HWCAP(AT_HWCAP2, HWCAP2_I8MM, "hw.optional.arm.FEAT_I8MM"); }

extern const Isa kNeonI8mmIsa = {kNeonI8mmName,       "Advanced SIMD, 8-bit matrix products",
                                 supported,           kBinaryConv_neon,
                                 kU8Conv_neon_i8mm,   &kI8Conv_neon_i8mm,
                                 &kValueKernels_neon, &kResampling_neon};

}  // namespace phonebit::engine::cpu
