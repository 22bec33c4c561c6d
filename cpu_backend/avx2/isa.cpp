// AVX2 with FMA: Haswell, Zen and later.
#include "isa_kernels.h"

namespace phonebit::cpu {

PHONEBIT_DEPTHWISE_TRAMPOLINE(avx2)

// __builtin_cpu_supports looks at XCR0 too: the operating system must save the wide registers.
static bool supported() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt");
}

const Isa kAvx2Isa = {
    "avx2",       "AVX2/FMA/BMI2", supported,      kBinaryConv_avx2,
    kU8Conv_avx2, &kF32Conv_avx2,  depthwise_avx2, &kValueKernels_avx2,
};

}  // namespace phonebit::cpu
