// What an instruction set consists of. Its folder defines the tables of PHONEBIT_KERNELS_OF(suffix), mostly in
// value_kernels.cpp, and isa.cpp, which gathers them into an Isa; its binary convolutions are rows of select.cpp.
//
// A folder whose instruction set was not compiled in defines nothing; nobody refers to its names then.
#pragma once

#include "kernel_types.h"
#include "select.h"

// clang-format off
#define PHONEBIT_KERNELS_OF(suffix)                   \
  extern const U8ConvKernel* const kU8Conv_##suffix[]; \
  extern const I8ConvKernel kI8Conv_##suffix;          \
  extern const ValueKernels kValueKernels_##suffix;    \
  extern const ResamplingKernels kResampling_##suffix;
// clang-format on

namespace phonebit::engine::cpu {

// Those of neon/, which the other NEON folders have in part.
PHONEBIT_KERNELS_OF(neon)
PHONEBIT_KERNELS_OF(neon_i8mm)

}  // namespace phonebit::engine::cpu
