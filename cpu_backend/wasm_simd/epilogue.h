// What the files of this folder have in common, compiled once.
#pragma once

#include "kernel_types.h"

namespace phonebit::engine::cpu {

/// value_kernels.cpp: apply_epilogue of portable/epilogue.inl.
void wasm_simd_epilogue(const Epilogue& epilogue, float* v, int pixel0, int count, int channel0,
                        int channels);

}  // namespace phonebit::engine::cpu
