// NEON with products of matrices of bytes: Cortex-A510, A710, X2, Neoverse V1 and later. Only layers of bytes
// differ from neon/.
#include "isa_kernels.h"
#include "neon/hwcaps.h"

namespace phonebit::engine::cpu {

PHONEBIT_DEPTHWISE_TRAMPOLINE(neon)

static bool supported() { return PHONEBIT_HAS_HWCAP(AT_HWCAP2, HWCAP2_I8MM, "hw.optional.arm.FEAT_I8MM"); }

const Isa kNeonI8mmIsa = {
    kNeonI8mmName,       "Advanced SIMD, 8-bit matrix products",
    supported,           kBinaryConv_neon,
    kU8Conv_i8mm,        &kF32Conv_neon,
    &kF16Conv_neon,      &kW8Conv_neon,
    &kI8Conv_i8mm,       depthwise_neon,
    &kValueKernels_neon,
};

}  // namespace phonebit::engine::cpu
