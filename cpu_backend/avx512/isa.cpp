// AVX-512 with vector popcount: Ice Lake, Zen 4 and later.
#include "isa_kernels.h"
#include "x86_features.h"

namespace phonebit::engine::cpu {

PHONEBIT_KERNELS_OF(avx512)

extern const Isa kAvx512Isa = {
    kAvx512Name,           "AVX-512F/BW/DQ/VL/VPOPCNTDQ/BITALG/VNNI/VBMI/GFNI",
    x86_has_avx512,        kBinaryConv_avx512,
    kU8Conv_avx512,        &kI8Conv_avx512,
    &kValueKernels_avx512, &kResampling_avx512,
};

}  // namespace phonebit::engine::cpu
