// The binary convolutions of this folder, best first. 32-bit Arm has
// half as many registers.
#include "binary_conv_kernels.h"

namespace phonebit::engine::cpu {

const BinaryConvKernel* const kBinaryConv_neon[] = {
#if defined(__aarch64__)
    &kSharedSumsConv_neon,
#endif
    &kCountConv_neon,
    nullptr,
};

}  // namespace phonebit::engine::cpu
