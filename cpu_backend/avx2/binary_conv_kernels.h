// One kernel a file in this folder.
#pragma once

#include "isa_kernels.h"

namespace phonebit::engine::cpu {

extern const BinaryConvKernel kPairTableConv_avx2;
extern const BinaryConvKernel kDenseConv_avx2;

}  // namespace phonebit::engine::cpu
