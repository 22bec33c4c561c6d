// Max-pooling of packed bits. OR over the window is the maximum of +1/-1, AND the minimum; AND(x) = ~OR(~x),
// so channels with flip bits only need an xor before and after.
//
// A window's rows and columns may be reduced one after the other. Pixels narrower than a vector reduce the rows
// first: all pixels of a row lie together, so that the map's rows are one long OR, whatever a pixel's width.
// So are the columns, once rows are padded, at every column instead of every stride-th: still less work than
// windows one by one. Wide pixels fill vectors by themselves and are reduced window by window.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "pieces.inl"
#include "whole_columns.inl"

/// Words of a padded row that are reduced at a time; with the flips they stay in the first cache.
constexpr int kPoolWords = 2048;
/// Windows of more rows are reduced one by one, so that a pass over a padded row is not more than two pieces.
constexpr int kPoolRows = 4096;

template <class Unit>
PHONEBIT_INLINE void max_pool_unit(const uint32_t* first_tap, size_t row_step, size_t tap_step, int rows,
                                   int columns, const uint32_t* flip_mask, uint32_t* out) {
  Unit flip = {}, any = {};
  if (flip_mask) flip = load<Unit>(flip_mask);
  for (int ky = 0; ky < rows; ky++, first_tap += row_step) {
    for (int kx = 0; kx < columns; kx++) any |= load<Unit>(first_tap + kx * tap_step) ^ flip;
  }
  store(out, any ^ flip);
}

/// Output rows [row_begin, row_end), window by window.
static void max_pool_windows(const ConvShape& s, const uint32_t* flip_mask, const uint32_t* input,
                             int row_begin, int row_end, uint32_t* output, const Stop& stop) {
  const int count = words(s.in_c), wanted = words(s.out_c);
  Pieces pieces(stop);
  const size_t row_step = (size_t)s.dilation_h * s.in_w * count, tap_step = (size_t)s.dilation_w * count;
  const TapSpan whole = whole_columns(s);
  for (int y = row_begin; y < row_end; y++) {
    const TapSpan rows = row_span(s, y);
    const int in_y = y * s.stride_h - s.pad_top + rows.begin * s.dilation_h;
    for (int x = 0; x < s.out_w; x++) {
      const TapSpan columns = column_taps(s, whole, x);
      const int in_x = x * s.stride_w - s.pad_left + columns.begin * s.dilation_w;
      const uint32_t* tap = input + ((int64_t)in_y * s.in_w + in_x) * count;
      uint32_t* out = output + ((int64_t)y * s.out_w + x) * count;
      const int height = rows.end - rows.begin, width = columns.end - columns.begin;
      const auto flip_at = [&](int i) { return flip_mask ? flip_mask + i : nullptr; };
      int i = 0;
      for (; i + kLanes <= wanted; i += kLanes) {
        max_pool_unit<WordVector>(tap + i, row_step, tap_step, height, width, flip_at(i), out + i);
        if (pieces.is_end_after((int64_t)height * width)) return;
      }
      for (; i < wanted; i++) {
        max_pool_unit<uint32_t>(tap + i, row_step, tap_step, height, width, flip_at(i), out + i);
        if (pieces.is_end_after((int64_t)height * width)) return;
      }
    }
  }
}

/// A part of a padded row, its windows' rows reduced: `any` is what the channels' signs after the xor with
/// `flips` have in common. Both have whole pixels from the part's first column on.
struct PoolRow {
  alignas(64) uint32_t any[kPoolWords + kLanes];
  alignas(64) uint32_t flips[kPoolWords + kLanes];
};

/// any = OR over the windows' rows of output row y, for `columns` columns of the padded map from `first` on.
/// Padding is 0: it changes nothing.
static inline void pool_rows(const ConvShape& s, const uint32_t* input, int y, int first, int columns,
                             PoolRow& row) {
  const int count = words(s.in_c);
  const TapSpan taps = row_span(s, y);
  const int padding = s.pad_left - first, room = s.in_w + padding;
  const int left = padding < 0 ? 0 : padding < columns ? padding : columns;
  const int right = room < left ? left : room < columns ? room : columns;
  __builtin_memset(row.any, 0, (size_t)left * count * sizeof(uint32_t));
  __builtin_memset(row.any + right * count, 0, (size_t)(columns - right) * count * sizeof(uint32_t));
  const int64_t in_y = y * s.stride_h - s.pad_top + taps.begin * s.dilation_h;
  const uint32_t* from = input + (in_y * s.in_w + left - padding) * count;
  const size_t row_step = (size_t)s.dilation_h * s.in_w * count;
  const int height = taps.end - taps.begin, length = (right - left) * count;
  const auto reduce = [&](auto unit, int i) PHONEBIT_LAMBDA_INLINE {
    using Unit = decltype(unit);
    const Unit flip = load<Unit>(row.flips + i);
    Unit any = {};
    for (int ky = 0; ky < height; ky++) any |= load<Unit>(from + ky * row_step + i) ^ flip;
    store(row.any + left * count + i, any);
  };
  int i = 0;
  for (; i + kLanes <= length; i += kLanes) reduce(WordVector{}, i);
  for (; i < length; i++) reduce(uint32_t{}, i);
}

/// The windows' columns: any[i] becomes the result of the window that begins at word i's column.
static inline void pool_columns(const ConvShape& s, int columns, PoolRow& row) {
  const int length = columns * words(s.in_c), step = s.dilation_w * words(s.in_c);
  for (int i = 0; i < length; i += kLanes) {
    WordVector any = load<WordVector>(row.any + i);
    for (int kx = 1; kx < s.kernel_w; kx++) any |= load<WordVector>(row.any + i + kx * step);
    store(row.any + i, any ^ load<WordVector>(row.flips + i));
  }
}

/// Every stride-th of some pixels of `words_in` words; a constant word count makes the copy an instruction.
template <class Words>
PHONEBIT_INLINE void pick_pixels(Words words_in, const uint32_t* from, int stride, int pixels,
                                 uint32_t* out) {
  for (int x = 0; x < pixels; x++, from += stride * words_in, out += words_in)
    __builtin_memcpy(out, from, words_in * sizeof(uint32_t));
}

/// OR over the window, AND where flip_mask (words(c), may be null) is set. A part of the words of a pixel is
/// reduced window by window.
static void max_pool_bits(const ConvShape& s, const uint32_t* flip_mask, const uint32_t* input, int row_begin,
                          int row_end, uint32_t* output, const Stop& stop) {
  const int count = words(s.in_c), reach = (s.kernel_w - 1) * s.dilation_w + 1;
  if (count >= kLanes || words(s.out_c) < count || (int64_t)reach * count > kPoolWords ||
      s.kernel_h > kPoolRows)
    return max_pool_windows(s, flip_mask, input, row_begin, row_end, output, stop);
  const int max_pixels = (kPoolWords / count - reach) / s.stride_w + 1;
  const int pass = max_pixels < s.out_w ? max_pixels : s.out_w;
  PoolRow row;
  Pieces pieces(stop);
  __builtin_memset(row.any, 0, sizeof row.any);
  for (int i = 0; i < ((pass - 1) * s.stride_w + reach) * count + kLanes; i++)
    row.flips[i] = flip_mask ? flip_mask[i % count] : 0;
  for (int y = row_begin; y < row_end; y++) {
    for (int x = 0; x < s.out_w; x += pass) {
      const int pixels = s.out_w - x < pass ? s.out_w - x : pass, starts = (pixels - 1) * s.stride_w + 1;
      pool_rows(s, input, y, x * s.stride_w, starts + reach - 1, row);
      pool_columns(s, starts, row);
      uint32_t* out = output + ((int64_t)y * s.out_w + x) * count;
      switch (count) {
        case 1:
          pick_pixels(Index<1>{}, row.any, s.stride_w, pixels, out);
          break;
        case 2:
          pick_pixels(Index<2>{}, row.any, s.stride_w, pixels, out);
          break;
        case 4:
          pick_pixels(Index<4>{}, row.any, s.stride_w, pixels, out);
          break;
        default:
          pick_pixels(count, row.any, s.stride_w, pixels, out);
      }
      if (pieces.is_end_after((int64_t)(starts + reach) * count * (s.kernel_h + s.kernel_w))) return;
    }
  }
}
