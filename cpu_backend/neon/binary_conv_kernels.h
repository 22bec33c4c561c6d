// One kernel a file in this folder.
#pragma once

#include "isa_kernels.h"

namespace phonebit::engine::cpu {

extern const BinaryConvKernel kSharedSumsConv_neon;
extern const BinaryConvKernel kCountConv_neon;

}  // namespace phonebit::engine::cpu
