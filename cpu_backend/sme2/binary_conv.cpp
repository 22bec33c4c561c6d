// The binary convolutions of this folder, best first.
#include "binary_conv_kernels.h"

namespace phonebit::engine::cpu {

const BinaryConvKernel* const kBinaryConv_sme2[] = {&kOuterProductConv_sme2, &kSharedSumsConv_neon,
                                                    &kCountConv_neon, nullptr};

}  // namespace phonebit::engine::cpu
