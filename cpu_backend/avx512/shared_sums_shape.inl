// Sizes of what the kernel of shared sums works with; no vectors, so that it can be asked anywhere.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after kernel_types.h.
#pragma once

/// Pixels next to each other in a row whose bits are a byte of a plane; a row's last group may be partly empty.
constexpr int kGroupPixels = 8;

static inline int row_groups(const ConvShape& s) { return (s.out_w + kGroupPixels - 1) / kGroupPixels; }

/// Groups of a tile: bytes of a vector. Where a map is more than one of 32, tiles are of 64, but for the rest.
static inline int tile_groups(const ConvShape& s) { return s.out_h * row_groups(s) > 32 ? 64 : 32; }

/// Channels of scratch and planes; those from in_c on are in no list.
static inline int plane_channels(const ConvShape& s) { return (s.in_c + 63) / 64 * 64; }

/// Taps and channels of a window; 12 digits hold their number.
constexpr int kMaxSharedPositions = 4094;
static inline int window_positions(const ConvShape& s) { return s.kernel_h * s.kernel_w * s.in_c; }

constexpr int kMaxBorderClasses = 144;  // of windows of 12x12 with as much padding on both sides

/// A plane has a tile and the rows below that windows reach: kernel rows lie row_groups bytes apart.
static inline int plane_bytes(const ConvShape& s, int groups) {
  return (groups + (s.kernel_h - 1) * row_groups(s) + 7) / 8 * 8;
}
static inline int plane_step(const ConvShape& s) { return plane_bytes(s, tile_groups(s)); }

/// Planes of a tile: a bit for each channel and column of the window. After them a vector of 0 and one of 1.
static inline int constants_offset(const ConvShape& s) {
  return s.kernel_w * plane_channels(s) * plane_step(s);
}
static inline int all_planes_bytes(const ConvShape& s) { return constants_offset(s) + 2 * 64; }
constexpr int kMaxPlanesBytes = 1 << 16;  // offsets of planes have 16 bits

/// Bytes of a row of the map with its padding.
static inline int padded_row_bytes(const ConvShape& s) {
  return (row_groups(s) * kGroupPixels + s.kernel_w - 1) * (s.in_c / 8);
}
constexpr int kMaxRowBytes = 1 << 14;
