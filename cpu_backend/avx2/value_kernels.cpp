// AVX2 and FMA: vectors of 32 bytes.
// The float, first-layer and window kernels of portable/, compiled with this folder's flags.
#include "isa_kernels.h"
#include "simd/avx2.h"

namespace phonebit::engine::cpu {
namespace {
#include "portable/all_kernels.inl"
}  // namespace

PHONEBIT_KERNELS_OF(avx2)
const I8ConvKernel kI8Conv_avx2 = kI8Convolution;
const U8ConvKernel* const kU8Conv_avx2[] = {&kU8ConvDirect, &kU8ConvPlanes, nullptr};
const ValueKernels kValueKernels_avx2 = kValueKernels;
const ResamplingKernels kResampling_avx2 = kResampling;

}  // namespace phonebit::engine::cpu
