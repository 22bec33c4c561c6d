// The epilogue of kernels that NEON computes on 32-bit Arm, where NEON itself would change results: it takes
// subnormal floats for 0, as VFP does not.
#pragma once

#include "kernel_types.h"

namespace phonebit::cpu {

#if defined(__arm__)
/// apply_epilogue of portable/epilogue.inl, compiled without NEON.
void vfp_epilogue(const Epilogue& epilogue, float* v, int pixel0, int count, int channel0, int channels);
#endif

}  // namespace phonebit::cpu
