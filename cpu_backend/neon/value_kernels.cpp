// AArch64's base NEON: vectors of 16 bytes.
// The float, first-layer and window kernels of portable/, compiled with this folder's flags.
#include "isa_kernels.h"
#include "portable/intrinsics.h"

namespace phonebit::cpu {
namespace {
#include "portable/f32_conv.inl"
#include "portable/i8_conv.inl"
#include "portable/u8_conv_direct.inl"
#include "portable/u8_conv_planes.inl"
#include "portable/value_kernels.inl"
}  // namespace

const F32ConvKernel kF32Conv_neon = kF32Convolution;
const F16ConvKernel kF16Conv_neon = kF16Convolution;
const W8ConvKernel kW8Conv_neon = kW8Convolution;
const I8ConvKernel kI8Conv_neon = kI8Convolution;
const U8ConvKernel* const kU8Conv_neon[] = {&kU8ConvDirect, &kU8ConvPlanes, nullptr};
const BinaryDepthwiseFn kBinaryDepthwise_neon = binary_depthwise;
const ValueKernels kValueKernels_neon = kValueKernels;

}  // namespace phonebit::cpu
