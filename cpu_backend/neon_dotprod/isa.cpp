// NEON with dot products of bytes: Cortex-A55, A75, A76 and later. Only layers of bytes differ from neon/.
#include "isa_kernels.h"
#include "neon/hwcaps.h"

namespace phonebit::engine::cpu {

PHONEBIT_DEPTHWISE_TRAMPOLINE(neon)

static bool supported() {
  return PHONEBIT_HAS_HWCAP(AT_HWCAP, HWCAP_ASIMDDP, "hw.optional.arm.FEAT_DotProd");
}

const Isa kNeonDotprodIsa = {
    kNeonDotprodName,    "Advanced SIMD, dot products",
    supported,           kBinaryConv_neon,
    kU8Conv_dotprod,     &kF32Conv_neon,
    &kF16Conv_neon,      &kW8Conv_neon,
    &kI8Conv_dotprod,    depthwise_neon,
    &kValueKernels_neon,
};

}  // namespace phonebit::engine::cpu
