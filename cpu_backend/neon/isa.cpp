// Advanced SIMD: part of every AArch64 processor. On 32-bit Arm it is asked for together with the fused
// multiply-add of VFPv4, which float layers need to be fast: Cortex-A7, A15 and later have both.
#include "hwcaps.h"
#include "isa_kernels.h"

namespace phonebit::engine::cpu {

#if defined(__aarch64__)
static constexpr const char kFeatures[] = "Advanced SIMD";
static bool supported() { return true; }
#else
static constexpr const char kFeatures[] = "Advanced SIMD, VFPv4";
static bool supported() {
  return PHONEBIT_HAS_HWCAP(AT_HWCAP, HWCAP_NEON, "") && PHONEBIT_HAS_HWCAP(AT_HWCAP, HWCAP_VFPv4, "");
}
#endif

extern const Isa kNeonIsa = {kNeonName,    kFeatures,     supported,           kBinaryConv_neon,
                             kU8Conv_neon, &kI8Conv_neon, &kValueKernels_neon, &kResampling_neon};

}  // namespace phonebit::engine::cpu
