// The binary convolutions of this folder, best first.
#include "binary_conv_kernels.h"

namespace phonebit::cpu {

const BinaryConvKernel* const kBinaryConv_neon[] = {
    &kPairTableConv_neon,
    &kCountConv_neon,
    nullptr,
};

}  // namespace phonebit::cpu
