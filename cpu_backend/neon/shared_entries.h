// What stands before the weights of binary convolutions, for this and other NEON folders; compiled once, in
// binary_conv_count.cpp: [border table][per block, per border class: 64 entries]. An entry is a limit (bit = d < limit)
// or, for the epilogue form, a base (acc = base - 2 d). It has 4 bytes; where sums have 16 bits, limits are stored as
// such, and bases with kBaseBias of finish_counts.h.
#pragma once

#include "kernel_types.h"

namespace phonebit::engine::cpu {

size_t neon_entries_bytes(const ConvShape& s);
void neon_pack_entries(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                       bool has_short_sums, void* packed);

}  // namespace phonebit::engine::cpu
