// Portable C++: the instruction set that every machine has.
#include "isa_kernels.h"

namespace phonebit::cpu {

PHONEBIT_DEPTHWISE_TRAMPOLINE(scalar)

static bool supported() { return true; }

const Isa kScalarIsa = {
    "scalar",           "portable C++",        supported,
    kBinaryConv_scalar, kU8Conv_scalar,        &kF32Conv_scalar,
    &kF16Conv_scalar,   &kW8Conv_scalar,       &kI8Conv_scalar,
    depthwise_scalar,   &kValueKernels_scalar,
};

}  // namespace phonebit::cpu
