// The binary convolutions of this folder, best first.
#include "binary_conv_kernels.h"

namespace phonebit::engine::cpu {

const BinaryConvKernel* const kBinaryConv_avx512[] = {
    &kDenseConv_avx512,     &kSharedSumsConv_avx512, &kSharedWindowsConv_avx512,
    &kCarrySaveConv_avx512, &kPopcountConv_avx512,   nullptr,
};

}  // namespace phonebit::engine::cpu
