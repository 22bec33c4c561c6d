// NEON with dot products of bytes: Cortex-A55, A75, A76 and later. Only layers of bytes differ from neon/.
#include "isa_kernels.h"
#include "neon/hwcaps.h"

namespace phonebit::engine::cpu {

PHONEBIT_KERNELS_OF(neon_dotprod)

static bool supported() {
  return PHONEBIT_HAS_HWCAP(AT_HWCAP, HWCAP_ASIMDDP, "hw.optional.arm.FEAT_DotProd");
}

extern const Isa kNeonDotprodIsa = {
    kNeonDotprodName,     "Advanced SIMD, dot products", supported,           kBinaryConv_neon,
    kU8Conv_neon_dotprod, &kI8Conv_neon_dotprod,         &kValueKernels_neon, &kResampling_neon};

}  // namespace phonebit::engine::cpu
