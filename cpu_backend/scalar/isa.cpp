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

PHONEBIT_KERNELS_OF(scalar)

static bool supported() { return true; }

extern const Isa kScalarIsa = {
    kScalarName,
    "portable C++",
    supported,
    kBinaryConv_scalar,
    PHONEBIT_PORTABLE(kU8Conv),
    &PHONEBIT_PORTABLE(kI8Conv),
    &PHONEBIT_PORTABLE(kValueKernels),
    &PHONEBIT_PORTABLE(kResampling),
};

}  // namespace phonebit::engine::cpu
