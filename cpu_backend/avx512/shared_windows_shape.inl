// Sizes of what the kernel of windows that share sums works with; no vectors, so that it can be asked anywhere.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after kernel_types.h.
#pragma once

/// Output pixels next to each other in a row that share sums.
constexpr int kMaxWindows = 7;
static inline int window_groups(const ConvShape& s) { return (s.out_w + kMaxWindows - 1) / kMaxWindows; }
static inline int group_windows(const ConvShape& s) {
  const int even = (s.out_w + window_groups(s) - 1) / window_groups(s);
  return even < 4 ? 4 : even;
}

/// Taps and channels of a window; 14 digits hold their number.
constexpr int kMaxWindowPositions = (1 << 14) - 1;
static inline int row_positions(const ConvShape& s) { return s.kernel_w * s.in_c; }

constexpr int kMaxKernelRows = 16;  // of a window

/// Pixels of a row of the map that groups read, with those of 8 windows that a load reads.
static inline int group_columns(const ConvShape& s) {
  const int last = (window_groups(s) - 1) * group_windows(s) + 7;
  return last * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
}
constexpr int kMaxGroupRowBytes = 1 << 15;

/// Filters whose bits are a plane.
constexpr int kLaneFilters = 512;
