// Convolutions of bytes by dot products, compiled with this folder's flags.
#include "isa_kernels.h"
#include "neon/shared_bytes.h"
#include "neon/shared_epilogue.h"
#include "neon/shared_lines.h"
#include "portable/intrinsics.h"

namespace phonebit::engine::cpu {
namespace {
#include "neon_dotprod/byte_dots.inl"
// These take what they sum by from the file above.
#include "portable/i8_conv.inl"
#include "portable/u8_conv_direct.inl"
}  // namespace

const I8ConvKernel kI8Conv_dotprod = kI8Convolution;
const U8ConvKernel* const kU8Conv_dotprod[] = {&kU8ConvDirect, nullptr};

}  // namespace phonebit::engine::cpu
