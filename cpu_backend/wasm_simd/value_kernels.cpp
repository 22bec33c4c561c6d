// WebAssembly with 128-bit SIMD.
// The float, first-layer and window kernels of portable/, compiled with this folder's flags.
#include "epilogue.h"
#include "isa_kernels.h"
#include "simd/wasm.h"

namespace phonebit::engine::cpu {
namespace {
#include "portable/all_kernels.inl"
}  // namespace

void wasm_simd_epilogue(const Epilogue& epilogue, float* v, int pixel0, int count, int channel0,
                        int channels) {
  apply_epilogue(epilogue, v, pixel0, count, channel0, channels);
}

PHONEBIT_KERNELS_OF(wasm_simd)
const I8ConvKernel kI8Conv_wasm_simd = kI8Convolution;
const U8ConvKernel* const kU8Conv_wasm_simd[] = {&kU8ConvDirect, &kU8ConvPlanes, nullptr};
const ValueKernels kValueKernels_wasm_simd = kValueKernels;
const ResamplingKernels kResampling_wasm_simd = kResampling;

}  // namespace phonebit::engine::cpu
