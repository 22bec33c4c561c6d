// The input lines and weights of first layers for this and the other NEON folders, compiled once, in
// u8_conv.cpp. Include this before portable/u8_conv_direct.inl, which leaves its work to these functions then.
#pragma once

#include "kernel_types.h"

#define PHONEBIT_SHARED_LINES

namespace phonebit::engine::cpu {

/// fill_line of portable/u8_lines.inl.
void neon_u8_line(const ConvShape& s, const uint8_t* input, int y, uint8_t* out);
/// direct_pack of portable/u8_conv_direct.inl.
void neon_u8_pack(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed,
                  int tap_group, int offset, int positive, int negative);

}  // namespace phonebit::engine::cpu
