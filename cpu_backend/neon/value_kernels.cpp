// The float and window kernels of portable/, compiled with this folder's flags: on AArch64 vectors of 16
// bytes, on 32-bit Arm the scalar VFP with its fused multiply-add, because NEON takes subnormal floats for 0
// there.
#include "isa_kernels.h"
#include "simd/neon.h"

#if defined(__arm__) && defined(__ARM_NEON)
#error "compile this file without NEON, e.g. by -mfpu=vfpv4"
#endif

namespace phonebit::engine::cpu {
namespace {
#include "portable/epilogue.inl"
#include "portable/i8_products.inl"
#if defined(__aarch64__)
#include "neon/f32_tile.inl"
#endif
// These use the files above.
#include "portable/i8_packing.inl"
// These use the files above.
#include "portable/f32_conv.inl"
#include "portable/i8_conv.inl"
#include "portable/value_kernels.inl"
}  // namespace

// Of neon/shared.h.
void neon_epilogue(const Epilogue& epilogue, float* v, int pixel0, int count, int channel0, int channels) {
  apply_epilogue(epilogue, v, pixel0, count, channel0, channels);
}
void neon_pack_bytes(const ConvShape& s, const int8_t* weights, const float* scales, void* packed,
                     int group_taps, int max_vectors) {
  pack_bytes(s, weights, scales, packed, group_taps, max_vectors);
}
float neon_largest(const float* values, size_t count) { return i8_largest(values, count); }
void neon_prepare_bytes(const ConvShape& s, const float* input, float multiplier, void* scratch,
                        int row_begin, int row_end) {
  i8_prepare_input(s, input, multiplier, scratch, row_begin, row_end);
}

const I8ConvKernel kI8Conv_neon = kI8Convolution;
const ValueKernels kValueKernels_neon = kValueKernels;

}  // namespace phonebit::engine::cpu
