// The binary convolutions of this folder, best first. 32-bit Arm has no table lookup of 16 bytes in one
// operation.
#include "binary_conv_kernels.h"

namespace phonebit::engine::cpu {

const BinaryConvKernel* const kBinaryConv_neon[] = {
#if defined(__aarch64__)
    &kPairTableConv_neon,
#endif
    &kCountConv_neon,
    nullptr,
};

}  // namespace phonebit::engine::cpu
