// What the 8-bit convolutions of neon_dotprod/ and neon_i8mm/ do like those of neon/, where it is compiled: in place of
// portable/i8_packing.inl and portable/u8_packing.inl.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after neon/shared.h, portable/i8_dots.inl and
// portable/u8_dots.inl.
#pragma once

#include "portable/u8_lines.inl"

constexpr auto pack_bytes = neon_pack_bytes;
constexpr auto i8_largest = neon_largest;
constexpr auto i8_prepare_input = neon_prepare_bytes;
constexpr auto direct_pack = neon_u8_pack;
static inline void fill_line(const ConvShape& s, const U8Line&, const uint8_t* input, int y, uint8_t* out) {
  neon_u8_line(s, input, y, out);
}
