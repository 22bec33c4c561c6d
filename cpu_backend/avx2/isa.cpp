// AVX2 with FMA and F16C: Haswell, Zen and later.
#include "isa_kernels.h"
#include "x86_features.h"

namespace phonebit::engine::cpu {

PHONEBIT_KERNELS_OF(avx2)

extern const Isa kAvx2Isa = {
    kAvx2Name,    "AVX2/FMA/BMI2/F16C", x86_has_avx2,        kBinaryConv_avx2,
    kU8Conv_avx2, &kI8Conv_avx2,        &kValueKernels_avx2, &kResampling_avx2,
};

}  // namespace phonebit::engine::cpu
