// What the 8-bit convolutions of this and the other NEON folders have in common, compiled once, in
// value_kernels.cpp. Include this before portable/i8_conv.inl, which leaves its work to these functions then.
#pragma once

#include "kernel_types.h"

#define PHONEBIT_SHARED_BYTES

namespace phonebit::engine::cpu {

// pack_bytes, i8_largest and i8_prepare_input of portable/i8_conv.inl.
void neon_pack_bytes(const ConvShape& s, const int8_t* weights, const float* scales, void* packed,
                     int group_taps, int most_vectors);
float neon_largest(const float* values, size_t count);
void neon_prepare_bytes(const ConvShape& s, const float* input, float multiplier, void* scratch,
                        int row_begin, int row_end);

}  // namespace phonebit::engine::cpu
