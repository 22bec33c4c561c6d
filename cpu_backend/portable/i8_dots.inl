// The sums of i8_conv.inl on processors with DotTile (neon_dotprod/byte_dots.inl, neon_i8mm/byte_dots.inl).
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and DotTile.
#pragma once

template <int kPixels, int kVectors>
using ByteTileSums = DotTile<kPixels, kVectors>;
constexpr int kByteVectors = 4, kBytePixels = 4;  // 16 + 4 of 32 registers, one for weights
constexpr int kGroupTaps = kDotTaps;
