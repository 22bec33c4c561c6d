// One kernel a file in this folder.
#pragma once

#include "isa_kernels.h"

namespace phonebit::engine::cpu {

extern const BinaryConvKernel kCarrySaveConv_avx512;
extern const BinaryConvKernel kDenseConv_avx512;
extern const BinaryConvKernel kPopcountConv_avx512;
extern const BinaryConvKernel kSharedSumsConv_avx512;
extern const BinaryConvKernel kSharedWindowsConv_avx512;

}  // namespace phonebit::engine::cpu
