// The first-layer kernels of portable/, integers up to their epilogue, and those that resize images.
#include "isa_kernels.h"
#include "shared.h"
#include "simd/neon.h"

namespace phonebit::engine::cpu {
namespace {
#include "portable/u8_products.inl"
// These use the file above.
#include "portable/u8_packing.inl"
// These use the files above.
#include "portable/resampling.inl"
#include "portable/u8_conv_direct.inl"
}  // namespace

// Of neon/shared.h.
void neon_u8_line(const ConvShape& s, const uint8_t* input, int y, uint8_t* out) {
  fill_line(s, u8_line(s), input, y, out);
}
void neon_u8_pack(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed,
                  int tap_group, int offset, int positive, int negative) {
  direct_pack(s, weights, thresholds, packed, tap_group, offset, positive, negative);
}

const U8ConvKernel* const kU8Conv_neon[] = {&kU8ConvDirect, nullptr};
const ResamplingKernels kResampling_neon = kResampling;

}  // namespace phonebit::engine::cpu
