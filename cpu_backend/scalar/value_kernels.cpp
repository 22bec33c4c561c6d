// The portable instruction set: plain compiler vectors of 16 bytes (SSE2 on x86-64, NEON on aarch64), no
// flags. The float, first-layer and window kernels of portable/, compiled with this folder's flags.
#include "baseline.h"
#include "isa_kernels.h"

namespace phonebit::engine::cpu {
namespace {
#include "portable/all_kernels.inl"
}  // namespace

PHONEBIT_KERNELS_OF(scalar)
const I8ConvKernel kI8Conv_scalar = kI8Convolution;
const U8ConvKernel* const kU8Conv_scalar[] = {&kU8ConvDirect, &kU8ConvPlanes, nullptr};
const ValueKernels kValueKernels_scalar = kValueKernels;
const ResamplingKernels kResampling_scalar = kResampling;

}  // namespace phonebit::engine::cpu
