// The epilogue of this and the other NEON folders, compiled once, in value_kernels.cpp. Include this before
// portable/epilogue.inl, which leaves its work to neon_epilogue then.
//
// It saves a copy in every file. On 32-bit Arm it is needed: NEON takes subnormal floats for 0 there, so the
// file that has it is compiled without NEON.
#pragma once

#include "kernel_types.h"

#define PHONEBIT_SHARED_EPILOGUE

namespace phonebit::engine::cpu {

/// apply_epilogue of portable/epilogue.inl.
void neon_epilogue(const Epilogue& epilogue, float* v, int pixel0, int count, int channel0, int channels);

}  // namespace phonebit::engine::cpu
