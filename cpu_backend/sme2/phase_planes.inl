// The map in positions, for outer products of many pixels at once.
//
// A tile's rows must be equally far apart, so a tile is a stretch of the map in row-major order, across the
// ends of rows; the results between one output row and the next are thrown away. To keep this waste small and
// to support any stride, the map is
//   [channel chunk of kChunk][stride_h x stride_w phase planes][plane row][pitch]:
// pixel (y, x) of the padded map is at (y / stride_h, x / stride_w) of plane (y % stride_h, x % stride_w).
// Output (y, x) is then position q = y * pitch + x, and tap (ky, kx) adds a constant to it. For stride_w 1
// the padding right of one row is also the padding left of the next, so the pitch exceeds the row by only one
// of the two.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after kernel_types.h and kChunk.
#pragma once

#include "portable/padded_map.inl"

/// How the map is laid out, in positions.
struct Planes {
  int chunks, taps, pitch, rows;
  size_t plane, chunk;  // positions of one plane, of one chunk's planes

  explicit Planes(const ConvShape& s)
      : chunks((s.in_c + kChunk - 1) / kChunk),
        taps(s.kernel_h * s.kernel_w),
        pitch((touched_columns(s) + s.stride_w - 1) / s.stride_w),
        rows((touched_rows(s) + s.stride_h - 1) / s.stride_h) {
    const int right = touched_columns(s) - s.pad_left - s.in_w;
    if (s.stride_w == 1 && right > 0) pitch -= right < s.pad_left ? right : s.pad_left;
    // The last row's right padding has no next row to be part of.
    plane = (size_t)rows * pitch + touched_columns(s);
    chunk = plane * s.stride_h * s.stride_w;
  }

  int steps() const { return chunks * taps; }
  /// Where the row `y` of the padded map begins in plane column 0 (first chunk).
  size_t row(const ConvShape& s, int y) const {
    return (size_t)(y % s.stride_h) * s.stride_w * plane + (size_t)(y / s.stride_h) * pitch;
  }
  /// What step (chunk, tap) adds to an output position.
  size_t step(const ConvShape& s, int of_chunk, int tap) const {
    const int y = tap / s.kernel_w * s.dilation_h, x = tap % s.kernel_w * s.dilation_w;
    return of_chunk * chunk + row(s, y) + (size_t)(x % s.stride_w) * plane + x / s.stride_w;
  }
  /// Columns of row `y` of the padded map. A row leaves the padding that it shares with the plane's next row to that
  /// one.
  int columns(const ConvShape& s, int y) const {
    const bool last = y + s.stride_h >= touched_rows(s);
    return s.stride_w == 1 && !last ? pitch : touched_columns(s);
  }
};
