// Convolutions of bytes by matrix products, compiled with this folder's flags.
#include "isa_kernels.h"
#include "neon/shared.h"
#include "simd/neon.h"

namespace phonebit::engine::cpu {
namespace {
#include "neon_i8mm/byte_dots.inl"
// These use the file above.
#include "portable/i8_dots.inl"
#include "portable/u8_dots.inl"
// These use the files above.
#include "neon/shared_bytes.inl"
// These use the files above.
#include "portable/i8_conv.inl"
#include "portable/u8_conv_direct.inl"
}  // namespace

const I8ConvKernel kI8Conv_neon_i8mm = kI8Convolution;
const U8ConvKernel* const kU8Conv_neon_i8mm[] = {&kU8ConvDirect, nullptr};

}  // namespace phonebit::engine::cpu
