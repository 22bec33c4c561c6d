// Zero padding without run-time cost: which taps of a window fall outside the map, and what that is worth.
//
// Kernels count d = popcount(x xor w) over all taps of a map whose padding was written as bits: 1 for
// pad_value +1, otherwise 0. With K = kernel_h * kernel_w * in_c this is the accumulator directly for
// pad_value -1, +1:
//   acc = K - 2 d.
// For pad_value 0 the set M of padded taps must not count. Their bits are 0, so each of them put
// popcount(w_t) into d, and in_c into K:
//   acc = (K - |M| in_c) - 2 (d - sum over M of popcount(w_t)) = base_M - 2 d,
//   base_M = K - sum over M of (in_c - 2 popcount(w_t)).
// M is a product of padded kernel rows and padded kernel columns, so one base per channel and (row class,
// column class) pair is enough: 3 x 3 pairs for a 3x3 window with padding 1. A threshold T turns into a limit
// on d:
//   acc >= T  <=>  2 d <= base_M - T  <=>  d < floor((base_M - T) / 2) + 1.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after kernel_types.h.
#pragma once

/// Taps [begin, end) of a window along one axis lie inside the map.
struct TapSpan {
  int begin, end;
};

static inline TapSpan tap_span(int out, int in_size, int kernel, int stride, int dilation, int pad_before) {
  const int first = out * stride - pad_before;  // input position of tap 0
  int begin = first < 0 ? (-first + dilation - 1) / dilation : 0;
  int end = first < in_size ? (in_size - first + dilation - 1) / dilation : 0;
  if (begin > kernel) begin = kernel;
  if (end > kernel) end = kernel;
  if (end < begin) end = begin;
  return {begin, end};
}

[[maybe_unused]] static __attribute__((noinline)) TapSpan row_span(const ConvShape& s, int out_y) {
  return tap_span(out_y, s.in_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top);
}

[[maybe_unused]] static __attribute__((noinline)) TapSpan column_span(const ConvShape& s, int out_x) {
  return tap_span(out_x, s.in_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left);
}

/// True when some window reaches over the edge. Padding that no window reaches (a stride's remainder) does
/// not count.
static inline bool reaches_padding(const ConvShape& s) {
  if (s.pad_top > 0 || s.pad_left > 0) return true;
  const int last_y = (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h;
  const int last_x = (s.out_w - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w;
  return last_y >= s.in_h || last_x >= s.in_w;
}

static inline bool same_span(TapSpan a, TapSpan b) { return a.begin == b.begin && a.end == b.end; }

/// Spans move monotonically with the output position, so equal ones are neighbours: a new class starts where
/// the span changes. Writes the class of each row or column into `classes` (may be null) and returns their
/// number.
[[maybe_unused]] static __attribute__((noinline)) int axis_classes(const ConvShape& s, bool of_rows,
                                                                   int* classes) {
  const auto span = [&](int i) { return of_rows ? row_span(s, i) : column_span(s, i); };
  const int outputs = of_rows ? s.out_h : s.out_w;
  int count = 1;
  for (int i = 0; i < outputs; ++i) {
    if (s.pad_value == 0 && i > 0 && !same_span(span(i), span(i - 1))) ++count;
    if (classes != nullptr) classes[i] = count - 1;
  }
  return count;
}

static inline int row_classes(const ConvShape& s, int* classes) { return axis_classes(s, true, classes); }

static inline int column_classes(const ConvShape& s, int* classes) { return axis_classes(s, false, classes); }

/// base_M of one output channel (`filter` in the file's layout) for the windows with these spans.
static inline int32_t border_base(const ConvShape& s, const uint32_t* filter, TapSpan rows, TapSpan columns) {
  const int words_in = words(s.in_c);
  int64_t base = (int64_t)s.kernel_h * s.kernel_w * s.in_c;
  if (s.pad_value != 0) return (int32_t)base;
  for (int ky = 0; ky < s.kernel_h; ++ky) {
    for (int kx = 0; kx < s.kernel_w; ++kx) {
      if (ky >= rows.begin && ky < rows.end && kx >= columns.begin && kx < columns.end) continue;
      const uint32_t* tap = filter + ((size_t)ky * s.kernel_w + kx) * words_in;
      int ones = 0;
      for (int i = 0; i < words_in; ++i) ones += __builtin_popcount(tap[i]);
      base -= s.in_c - 2 * ones;
    }
  }
  return (int32_t)base;
}

/// The d at which the bit turns off: bit = d < limit, clamped to [0, max_limit].
static inline uint32_t popcount_limit(int32_t base, int32_t threshold, uint32_t max_limit) {
  const int64_t room = (int64_t)base - threshold;
  if (room < 0) return 0;
  const int64_t limit = room / 2 + 1;
  return limit > (int64_t)max_limit ? max_limit : (uint32_t)limit;
}
