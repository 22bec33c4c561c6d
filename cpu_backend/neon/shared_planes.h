// Planes of the kernel for filters that share sums (binary_conv_shared_sums.cpp): which bits lie where.
#pragma once

#include "kernel_types.h"

namespace phonebit::engine::cpu {

/// Pixels of a tile: runs, one after the other in a row or in the map. Maps of up to 64 pixels have planes of half as
/// many, two of them in a register, each with its own sums.
constexpr int kSharedTilePixels = 128, kRuns = 8;
/// Planes of all positions and one of zeros; lists have offsets of 16 bits.
constexpr int kMaxPlaneBytes = 1 << 16;
/// Fewer fit a first cache of 32 kB with lists and sums; with more than the second number nearly every load misses it.
constexpr int kFewPlaneBytes = 24 << 10, kManyPlaneBytes = 48 << 10;

struct SharedPlanes {
  int positions;   ///< of the window: taps times channels of whole words
  int run_pixels;  ///< one byte per pixel
  int reach;       ///< pixels beyond a run whose bytes its planes have, too
  int plane_bytes;
  int plane_count;
  int segments;  ///< parts of the window, by rows, added one after the other, so that each fits the first cache
  int group_filters;  ///< how many share sums: the more positions of a part a lane adds, the more patterns pay
  int word_bits, kernel_w, dilation_w;

  explicit SharedPlanes(const ConvShape& s)
      : word_bits(words(s.in_c) * 32), kernel_w(s.kernel_w), dilation_w(s.dilation_w) {
    positions = s.kernel_h * s.kernel_w * word_bits;
    const int pixels = s.out_h * s.out_w;
    run_pixels = kSharedTilePixels / kRuns / (pixels <= kSharedTilePixels / 2 ? 2 : 1);
    // Taps of a row may share planes, as bytes that begin later: planes need a third of the bytes then. But runs end
    // with their rows, which may need more tiles.
    reach = (kernel_w - 1) * dilation_w;
    const int row_runs = (s.out_w + run_pixels - 1) / run_pixels, tile = kRuns * run_pixels;
    const bool takes_more = (row_runs * s.out_h + kRuns - 1) / kRuns > (pixels + tile - 1) / tile;
    if (s.stride_w != 1 || reach > run_pixels || (takes_more && positions * run_pixels <= kFewPlaneBytes))
      reach = 0;
    plane_bytes = run_pixels + reach;
    plane_count = positions / (reach > 0 ? kernel_w : 1);
    segments = plane_count * plane_bytes > kManyPlaneBytes ? s.kernel_h : 1;
    const int added = positions / segments / halves();
    group_filters = added < 1000 ? 3 : added < 2000 ? 4 : added < 4000 ? 5 : 6;
  }

  bool has_halves() const { return run_pixels < kSharedTilePixels / kRuns; }
  int halves() const { return has_halves() ? 2 : 1; }
  /// Those from a channel of a block on.
  int filters_from(int channel, int channels) const {
    return channels - channel < group_filters ? channels - channel : group_filters;
  }
  /// Where the plane of a position begins; that of `positions` is 0.
  int offset(int position) const {
    if (position == positions) return plane_count * plane_bytes;
    if (reach == 0) return position * plane_bytes;
    const int tap = position / word_bits;
    return (tap / kernel_w * word_bits + position % word_bits) * plane_bytes + tap % kernel_w * dilation_w;
  }
};

}  // namespace phonebit::engine::cpu
