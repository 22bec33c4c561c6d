// The output columns that need no thought about the map's left and right edge.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after kernel_types.h.
#pragma once

#include "border_classes.inl"

/// Output columns [begin, end) have windows that lie wholly between the map's left and right edge.
static inline TapSpan whole_columns(const ConvShape& s) {
  const int begin = (s.pad_left + s.stride_w - 1) / s.stride_w;
  const int last = s.in_w - 1 - (s.kernel_w - 1) * s.dilation_w + s.pad_left;  // of x * stride_w
  const int end = last < 0 ? 0 : last / s.stride_w + 1;
  return {begin, end < s.out_w ? end : s.out_w};
}

/// column_span without its divisions where the answer is all of them.
static inline TapSpan column_taps(const ConvShape& s, TapSpan whole, int x) {
  return x >= whole.begin && x < whole.end ? TapSpan{0, s.kernel_w} : column_span(s, x);
}
