// The float and window kernels of portable/, compiled with this folder's flags: on AArch64 vectors of 16
// bytes, on 32-bit Arm the scalar VFP with its fused multiply-add, because NEON takes subnormal floats for 0
// there.
#include "isa_kernels.h"
#include "portable/intrinsics.h"

#if defined(__arm__) && defined(__ARM_NEON)
#error "compile this file without NEON, e.g. by -mfpu=vfpv4"
#endif

namespace phonebit::engine::cpu {
namespace {
#include "portable/f32_conv.inl"
#include "portable/i8_conv.inl"
#include "portable/value_kernels.inl"
}  // namespace

// Of neon/shared_epilogue.h.
void neon_epilogue(const Epilogue& epilogue, float* v, int pixel0, int count, int channel0, int channels) {
  apply_epilogue(epilogue, v, pixel0, count, channel0, channels);
}

// Of neon/shared_bytes.h, for 64-bit Arm.
void neon_pack_bytes(const ConvShape& s, const int8_t* weights, const float* scales, void* packed,
                     int group_taps, int most_vectors) {
  pack_bytes(s, weights, scales, packed, group_taps, most_vectors);
}
float neon_largest(const float* values, size_t count) { return i8_largest(values, count); }
void neon_prepare_bytes(const ConvShape& s, const float* input, float multiplier, void* scratch,
                        int row_begin, int row_end) {
  i8_prepare_input(s, input, multiplier, scratch, row_begin, row_end);
}

const F32ConvKernel kF32Conv_neon = kF32Convolution;
const F16ConvKernel kF16Conv_neon = kF16Convolution;
const W8ConvKernel kW8Conv_neon = kW8Convolution;
const I8ConvKernel kI8Conv_neon = kI8Convolution;
const BinaryDepthwiseFn kBinaryDepthwise_neon = binary_depthwise;
const ValueKernels kValueKernels_neon = kValueKernels;

}  // namespace phonebit::engine::cpu
