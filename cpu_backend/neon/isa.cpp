// Advanced SIMD: part of every AArch64 processor, so there is nothing to ask for.
#include "isa_kernels.h"

namespace phonebit::cpu {

PHONEBIT_DEPTHWISE_TRAMPOLINE(neon)

static bool supported() { return true; }

const Isa kNeonIsa = {
    "neon",         "Advanced SIMD", supported,     kBinaryConv_neon, kU8Conv_neon,        &kF32Conv_neon,
    &kF16Conv_neon, &kW8Conv_neon,   &kI8Conv_neon, depthwise_neon,   &kValueKernels_neon,
};

}  // namespace phonebit::cpu
