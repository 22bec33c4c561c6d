// AVX2 with FMA and F16C: Haswell, Zen and later.
#include <cpuid.h>

#include "isa_kernels.h"

namespace phonebit::engine::cpu {

PHONEBIT_DEPTHWISE_TRAMPOLINE(avx2)

// Every processor with AVX2 has F16C; clang's __builtin_cpu_supports does not know its name everywhere.
static bool has_f16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

// __builtin_cpu_supports looks at XCR0 too: the operating system must save the wide registers.
static bool supported() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("popcnt") && has_f16c();
}

const Isa kAvx2Isa = {
    kAvx2Name,     "AVX2/FMA/BMI2/F16C", supported,           kBinaryConv_avx2,
    kU8Conv_avx2,  &kF32Conv_avx2,       &kF16Conv_avx2,      &kW8Conv_avx2,
    &kI8Conv_avx2, depthwise_avx2,       &kValueKernels_avx2,
};

}  // namespace phonebit::engine::cpu
