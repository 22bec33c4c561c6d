// WebAssembly with 128-bit SIMD. Where it is missing, the whole module does not load.
#include "isa_kernels.h"

namespace phonebit::engine::cpu {

PHONEBIT_KERNELS_OF(wasm_simd)

static bool supported() { return true; }

extern const Isa kWasmSimdIsa = {
    kWasmSimdName,
    "WebAssembly SIMD128",
    supported,
    kBinaryConv_wasm,
    kU8Conv_wasm_simd,
    &kI8Conv_wasm_simd,
    &kValueKernels_wasm_simd,
    &kResampling_wasm_simd,
};

}  // namespace phonebit::engine::cpu
