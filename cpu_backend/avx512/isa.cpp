// AVX-512 with vector popcount: Ice Lake, Zen 4 and later. AMX is a variant inside (binary_conv_amx.cpp).
#include "isa_kernels.h"

namespace phonebit::engine::cpu {

PHONEBIT_DEPTHWISE_TRAMPOLINE(avx512)

// __builtin_cpu_supports looks at XCR0 too: the operating system must save the wide registers.
static bool supported() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512bitalg") &&
         __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

const Isa kAvx512Isa = {
    kAvx512Name,
    "AVX-512F/BW/DQ/VL/VPOPCNTDQ/BITALG/VNNI/VBMI",
    supported,
    kBinaryConv_avx512,
    kU8Conv_avx512,
    &kF32Conv_avx512,
    &kF16Conv_avx512,
    &kW8Conv_avx512,
    &kI8Conv_avx512,
    depthwise_avx512,
    &kValueKernels_avx512,
};

}  // namespace phonebit::engine::cpu
