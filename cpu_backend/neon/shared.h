// What the files of this and the other NEON folders have in common, compiled once.
#pragma once

#include "kernel_types.h"

namespace phonebit::engine::cpu {

// value_kernels.cpp: apply_epilogue of portable/epilogue.inl, and portable/i8_packing.inl.
void neon_epilogue(const Epilogue& epilogue, float* v, int pixel0, int count, int channel0, int channels);
void neon_pack_bytes(const ConvShape& s, const int8_t* weights, const float* scales, void* packed,
                     int group_taps, int max_vectors);
float neon_largest(const float* values, size_t count);
void neon_prepare_bytes(const ConvShape& s, const float* input, float multiplier, void* scratch,
                        int row_begin, int row_end);

// u8_conv.cpp: fill_line and direct_pack of portable/u8_packing.inl.
void neon_u8_line(const ConvShape& s, const uint8_t* input, int y, uint8_t* out);
void neon_u8_pack(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed,
                  int tap_group, int offset, int positive, int negative);

// binary_conv_count.cpp: what precedes the weights of binary convolutions: [border table][per block, per border class:
// 64 entries]. An entry is a limit (bit = d < limit) or, for the epilogue form, a base (acc = base - 2 d). It has 4
// bytes; where sums have 16 bits, limits are stored as such, and bases with kBaseBias of finish_counts.h.
size_t neon_entries_bytes(const ConvShape& s);
void neon_pack_entries(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                       bool has_short_sums, void* packed);

namespace {

/// In place of portable/epilogue.inl. It saves a copy in every file. On 32-bit Arm it is needed: NEON takes subnormal
/// floats for 0 there, so the file that has it is compiled without NEON.
inline void apply_epilogue(const Epilogue& epilogue, float* v, int pixel0, int count, int channel0,
                           int channels) {
  neon_epilogue(epilogue, v, pixel0, count, channel0, channels);
}

}  // namespace
}  // namespace phonebit::engine::cpu
