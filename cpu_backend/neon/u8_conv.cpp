// The first-layer kernels of portable/: integers up to their epilogue.
#include "isa_kernels.h"
#include "portable/intrinsics.h"
#include "shared_epilogue.h"

namespace phonebit::cpu {
namespace {
#include "portable/u8_conv_direct.inl"
#include "portable/u8_conv_planes.inl"
}  // namespace

const U8ConvKernel* const kU8Conv_neon[] = {&kU8ConvDirect, &kU8ConvPlanes, nullptr};

}  // namespace phonebit::cpu
