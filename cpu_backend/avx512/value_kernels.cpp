// AVX-512 F/BW/DQ/VL and VNNI: vectors of 64 bytes. First layers use the AMX matrix unit where there is one.
// The float, first-layer and window kernels of portable/, compiled with this folder's flags.
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "isa_kernels.h"
#include "portable/intrinsics.h"

namespace phonebit::engine::cpu {
namespace {
#include "avx512/tile_unit.inl"
#include "portable/f32_conv.inl"
#include "portable/i8_conv.inl"
#include "portable/u8_conv_direct.inl"
#include "portable/u8_conv_planes.inl"
#include "portable/value_kernels.inl"
// Needs what the files above define.
#include "avx512/u8_conv_lookup.inl"
#include "avx512/u8_conv_tiles.inl"
}  // namespace

const F32ConvKernel kF32Conv_avx512 = kF32Convolution;
const F16ConvKernel kF16Conv_avx512 = kF16Convolution;
const W8ConvKernel kW8Conv_avx512 = kW8Convolution;
const I8ConvKernel kI8Conv_avx512 = kI8Convolution;
const U8ConvKernel* const kU8Conv_avx512[] = {&kU8ConvTiles, &kU8ConvLookup, &kU8ConvDirect, &kU8ConvPlanes,
                                              nullptr};
const BinaryDepthwiseFn kBinaryDepthwise_avx512 = binary_depthwise;
const ValueKernels kValueKernels_avx512 = kValueKernels;

}  // namespace phonebit::engine::cpu
