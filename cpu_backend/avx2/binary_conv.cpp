// The binary convolutions of this folder, best first.
#include "binary_conv_kernels.h"

namespace phonebit::engine::cpu {

const BinaryConvKernel* const kBinaryConv_avx2[] = {
    &kDenseConv_avx2,
    &kPairTableConv_avx2,
    nullptr,
};

}  // namespace phonebit::engine::cpu
