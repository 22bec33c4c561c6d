// Portable C++: the instruction set that every machine has.
#include "isa_kernels.h"

// Compiled for AArch64, portable/ without flags is what neon/ has already; the binary convolution is another
// one.
#if defined(__aarch64__)
#define PHONEBIT_PORTABLE(name) name##_neon
#else
#define PHONEBIT_PORTABLE(name) name##_scalar
#endif

namespace phonebit::engine::cpu {

#if defined(__aarch64__)
PHONEBIT_DEPTHWISE_TRAMPOLINE(neon)
#else
PHONEBIT_DEPTHWISE_TRAMPOLINE(scalar)
#endif

static bool supported() { return true; }

const Isa kScalarIsa = {
    kScalarName,
    "portable C++",
    supported,
    kBinaryConv_scalar,
    PHONEBIT_PORTABLE(kU8Conv),
    &PHONEBIT_PORTABLE(kF32Conv),
    &PHONEBIT_PORTABLE(kF16Conv),
    &PHONEBIT_PORTABLE(kW8Conv),
    &PHONEBIT_PORTABLE(kI8Conv),
    PHONEBIT_PORTABLE(depthwise),
    &PHONEBIT_PORTABLE(kValueKernels),
};

}  // namespace phonebit::engine::cpu
