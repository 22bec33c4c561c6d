// The register tile of u8_conv_direct.inl.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, from u8_products.inl or u8_dots.inl.
#pragma once

/// What a tile works on: `count` pixels of one row. The windows after them are computed too, wherever they
/// lead, but not stored.
struct U8Tile {
  const uint8_t* weights;
  const uint8_t* window;
  size_t pixel_bytes;  // from one window to the next
  int count, groups;
  int taps;  // of a window; the last group may have more
};

/// What follows the sums reads them from memory, once written for all pixels: straight code for each of them
/// is what makes a phone's library large. Layers of fewer than 16 channels use the tile of 16.
constexpr bool kU8SumsInMemory = kSmallCode;
constexpr int kU8MinVectors = kU8SumsInMemory ? kU8Vectors : 1;

/// More than ten windows have more addresses than there are registers.
template <int kVectors>
constexpr int kU8Pixels = kU8Sums / kVectors < 10 ? kU8Sums / kVectors : 10;

template <int kVectors>
using U8Sums = IntVector[kU8Pixels<kVectors>][kVectors];
