// The portable instruction set: plain compiler vectors of 16 bytes (SSE2 on x86-64, NEON on aarch64), no
// flags. The float, first-layer and window kernels of portable/, compiled with this folder's flags.
#include "isa_kernels.h"
#include "portable/intrinsics.h"

namespace phonebit::engine::cpu {
namespace {
#include "portable/f32_conv.inl"
#include "portable/i8_conv.inl"
#include "portable/u8_conv_direct.inl"
#include "portable/u8_conv_planes.inl"
#include "portable/value_kernels.inl"
}  // namespace

const F32ConvKernel kF32Conv_scalar = kF32Convolution;
const F16ConvKernel kF16Conv_scalar = kF16Convolution;
const W8ConvKernel kW8Conv_scalar = kW8Convolution;
const I8ConvKernel kI8Conv_scalar = kI8Convolution;
const U8ConvKernel* const kU8Conv_scalar[] = {&kU8ConvDirect, &kU8ConvPlanes, nullptr};
const BinaryDepthwiseFn kBinaryDepthwise_scalar = binary_depthwise;
const ValueKernels kValueKernels_scalar = kValueKernels;

}  // namespace phonebit::engine::cpu
