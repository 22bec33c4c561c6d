// The input lines of first layers for this and the other NEON folders, compiled once, in u8_conv.cpp. Include
// this before portable/u8_lines.inl, which leaves its work to neon_u8_line then.
#pragma once

#include "kernel_types.h"

#define PHONEBIT_SHARED_LINES

namespace phonebit::engine::cpu {

/// fill_line of portable/u8_lines.inl.
void neon_u8_line(const ConvShape& s, const uint8_t* input, int y, uint8_t* out);

}  // namespace phonebit::engine::cpu
