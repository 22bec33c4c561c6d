// The kernel of this folder; others are those of neon/.
#pragma once

#include "neon/binary_conv_kernels.h"

namespace phonebit::engine::cpu {

extern const BinaryConvKernel kOuterProductConv_sme2;

}  // namespace phonebit::engine::cpu
