// AVX2 and FMA: vectors of 32 bytes.
// The float, first-layer and window kernels of portable/, compiled with this folder's flags.
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

const F32ConvKernel kF32Conv_avx2 = kF32Convolution;
const F16ConvKernel kF16Conv_avx2 = kF16Convolution;
const W8ConvKernel kW8Conv_avx2 = kW8Convolution;
const I8ConvKernel kI8Conv_avx2 = kI8Convolution;
const U8ConvKernel* const kU8Conv_avx2[] = {&kU8ConvDirect, &kU8ConvPlanes, nullptr};
const BinaryDepthwiseFn kBinaryDepthwise_avx2 = binary_depthwise;
const ValueKernels kValueKernels_avx2 = kValueKernels;

}  // namespace phonebit::engine::cpu
