// What each instruction-set folder defines. One folder, one suffix: binary_conv*.cpp and value_kernels.cpp
// define these tables, isa.cpp gathers them into an Isa, dispatch.cpp lists the Isas.
//
// A folder whose instruction set was not compiled in defines nothing; nobody refers to its names then.
#pragma once

#include "kernel_types.h"
#include "select.h"

namespace phonebit::engine::cpu {

// clang-format off
#define PHONEBIT_DECLARE_ISA(suffix)                              \
  extern const BinaryConvKernel* const kBinaryConv_##suffix[];    \
  extern const U8ConvKernel* const kU8Conv_##suffix[];            \
  extern const F32ConvKernel kF32Conv_##suffix;                   \
  extern const F16ConvKernel kF16Conv_##suffix;                   \
  extern const W8ConvKernel kW8Conv_##suffix;                     \
  extern const I8ConvKernel kI8Conv_##suffix;                     \
  extern const BinaryDepthwiseFn kBinaryDepthwise_##suffix;       \
  extern const ValueKernels kValueKernels_##suffix;
// clang-format on

PHONEBIT_DECLARE_ISA(scalar)
PHONEBIT_DECLARE_ISA(avx2)
PHONEBIT_DECLARE_ISA(avx512)
PHONEBIT_DECLARE_ISA(neon)
#undef PHONEBIT_DECLARE_ISA

// Folders that share all but their convolutions of bytes with neon/.
extern const U8ConvKernel* const kU8Conv_dotprod[];
extern const I8ConvKernel kI8Conv_dotprod;
extern const U8ConvKernel* const kU8Conv_i8mm[];
extern const I8ConvKernel kI8Conv_i8mm;
// Shares all but its binary convolutions with neon_i8mm/.
extern const BinaryConvKernel* const kBinaryConv_sme2[];

/// A pointer to the depthwise function is a constant of its own, so an Isa can only take its value at run
/// time in another translation unit: isa.cpp goes through this call instead, and Isa stays a compile-time
/// constant.
#define PHONEBIT_DEPTHWISE_TRAMPOLINE(suffix)                                                                \
  static void depthwise_##suffix(const ConvShape& shape, const uint32_t* weights, const int32_t* thresholds, \
                                 const uint32_t* input, int row_begin, int row_end,                          \
                                 const AccumulatorSink& sink, const Stop& stop) {                            \
    kBinaryDepthwise_##suffix(shape, weights, thresholds, input, row_begin, row_end, sink, stop);            \
  }

extern const Isa kScalarIsa;
extern const Isa kAvx2Isa;
extern const Isa kAvx512Isa;
extern const Isa kNeonIsa;
extern const Isa kNeonDotprodIsa;
extern const Isa kNeonI8mmIsa;
extern const Isa kSme2Isa;

}  // namespace phonebit::engine::cpu
