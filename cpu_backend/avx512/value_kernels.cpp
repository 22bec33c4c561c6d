// AVX-512 F/BW/DQ/VL and VNNI: vectors of 64 bytes. First layers use the AMX matrix unit where there is one.
// The float, first-layer and window kernels of portable/, compiled with this folder's flags.
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "isa_kernels.h"
#include "simd/avx512.h"

namespace phonebit::engine::cpu {
namespace {
#include "avx512/tile_unit.inl"
#include "portable/all_kernels.inl"
// Needs what the files above define.
#include "avx512/u8_conv_lookup.inl"
#include "avx512/u8_conv_tiles.inl"
}  // namespace

PHONEBIT_KERNELS_OF(avx512)
const I8ConvKernel kI8Conv_avx512 = kI8Convolution;
const U8ConvKernel* const kU8Conv_avx512[] = {&kU8ConvTiles, &kU8ConvLookup, &kU8ConvDirect, &kU8ConvPlanes,
                                              nullptr};
const ValueKernels kValueKernels_avx512 = kValueKernels;
const ResamplingKernels kResampling_avx512 = kResampling;

}  // namespace phonebit::engine::cpu
