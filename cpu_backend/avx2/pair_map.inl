// Activations for the pair-table convolution: each 4 channels of two output pixels become the byte offset of
// their table (avx2/pair_table.inl).
//
// The two pixels are neighbours in the output, `stride_w` columns of the map apart. The last pixel of an
// output row is followed by the first one of the next row: their windows have columns of their own, after
// the plain ones.
//
//   scratch row y:  [plain columns: (y, x) with (y, x + stride_w)]
//                   [wrap columns: (y, last window) with (y + stride_h, first window)]
//                   [kRowSlack entries of 0]
//
// An entry is one u16, so this is four times the size of the packed map.
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h.
#pragma once

#include "portable/padded_map.inl"

/// Entries: fillers and look-ahead read up to 7 after a row, tails write up to 7.
constexpr int kRowSlack = 8;

/// The prepared map in scratch.
struct PairMap {
  int steps;              // u16 of one pixel
  int plain, wrap, rows;  // columns, and rows
  size_t row_stride;      // u16

  explicit PairMap(const ConvShape& s)
      : steps((s.in_c + kStepChannels - 1) / kStepChannels),
        plain(s.out_w > 1 ? (s.out_w - 2) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1 : 0),
        wrap((s.kernel_w - 1) * s.dilation_w + 1),
        rows(touched_rows(s)),
        row_stride(((size_t)plain + wrap) * steps + kRowSlack) {}

  /// First entry of the window of output pixel (y, x) and its successor.
  size_t window(const ConvShape& s, int y, int x) const {
    const size_t column = x == s.out_w - 1 ? plain : (size_t)x * s.stride_w;
    return (size_t)y * s.stride_h * row_stride + column * steps;
  }
};

static size_t pair_scratch_bytes(const ConvShape& s) {
  const PairMap map(s);
  return round_up_64(2 * map.row_stride * map.rows);
}

static int pair_prepare_rows(const ConvShape& s) { return touched_rows(s); }

/// 8 steps of one word each of two pixels: bits 4 i .. 4 i + 3 go to bits 4 .. 7 (first) and 8 .. 11 of entry
/// i.
static inline void expand_word(uint32_t first, uint32_t second, uint16_t* out) {
  for (int i = 0; i < 8; ++i) {
    out[i] = (uint16_t)((first >> (4 * i) & 15) << 4 | (second >> (4 * i) & 15) << 8);
  }
}

constexpr int kPaddingWords = 8;
constexpr uint32_t kPaddingBits[2][kPaddingWords] = {{0, 0, 0, 0, 0, 0, 0, 0},
                                                     {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u}};

/// A row of the padded map.
struct PaddedRow {
  const uint32_t* pixels;   // null: the whole row is padding
  const uint32_t* padding;  // kPaddingWords words of it
  int width, pad_left, words_in;

  PaddedRow(const ConvShape& s, const uint32_t* input, int row)
      : pixels(nullptr),
        padding(kPaddingBits[s.pad_value == 1]),
        width(s.in_w),
        pad_left(s.pad_left),
        words_in(words(s.in_c)) {
    const int y = row - s.pad_top;
    if (y >= 0 && y < s.in_h) pixels = input + (size_t)y * s.in_w * words_in;
  }
  /// Pixels from `column` on that lie inside the map.
  int inside(int column) const {
    const int x = column - pad_left;
    return pixels != nullptr && x >= 0 && x < width ? width - x : 0;
  }
  const uint32_t* pixel(int column) const { return pixels + (size_t)(column - pad_left) * words_in; }
  /// Words of the pixel from `word` on, at most kPaddingWords of padding.
  const uint32_t* words_at(int column, int word) const {
    return inside(column) > 0 ? pixel(column) + word : padding;
  }
};

/// A pair with padding on one or both sides: whole vectors first, then the tail's word.
template <class Simd>
void expand_padding(const ConvShape& s, const PaddedRow& a, int x, const PaddedRow& b, int y, uint16_t* out) {
  const int full = s.in_c / 32;
  for (int w = 0; w < full; w += kPaddingWords) {
    const int count = full - w < kPaddingWords ? full - w : kPaddingWords;
    Simd::expand(a.words_at(x, w), b.words_at(y, w), count, out + 8 * w);
  }
  if (s.in_c % 32 == 0) return;
  const uint32_t tail = (1u << s.in_c % 32) - 1;
  expand_word(*a.words_at(x, full) & tail, *b.words_at(y, full) & tail, out + 8 * full);
}

/// Pairs of columns from `first` and `second` on.
template <class Simd>
void expand_columns(const ConvShape& s, const PaddedRow& a, int first, const PaddedRow& b, int second,
                    int count, uint16_t* out) {
  const int words_in = words(s.in_c), steps = (s.in_c + 3) / 4;
  for (int i = 0; i < count;) {
    const int inside_a = a.inside(first + i), inside_b = b.inside(second + i);
    int pixels = 1;
    if (inside_a > 0 && inside_b > 0) {
      // Without tail bits the entries of neighbouring pixels are as contiguous as their words.
      if (s.in_c % 32 == 0) {
        pixels = inside_a < inside_b ? inside_a : inside_b;
        if (pixels > count - i) pixels = count - i;
      }
      Simd::expand(a.pixel(first + i), b.pixel(second + i), pixels * words_in, out + (size_t)i * steps);
    } else {
      expand_padding<Simd>(s, a, first + i, b, second + i, out + (size_t)i * steps);
    }
    i += pixels;
  }
}

/// A row: the pixels of `a` with those of `b` in plain columns, from column `plain_column` on, and with those of `c` in
/// wrap columns, from `wrap_column` on. Tails of in_c % 32 write up to 7 entries too many: left to right, each pixel
/// overwrites the one before's.
template <class Simd>
void expand_row(const ConvShape& s, const PairMap& map, const PaddedRow& a, const PaddedRow& b,
                int plain_column, const PaddedRow& c, int wrap_column, uint16_t* out) {
  expand_columns<Simd>(s, a, 0, b, plain_column, map.plain, out);
  expand_columns<Simd>(s, a, (s.out_w - 1) * s.stride_w, c, wrap_column, map.wrap,
                       out + (size_t)map.plain * map.steps);
  __builtin_memset(out + map.row_stride - kRowSlack, 0, kRowSlack * sizeof(uint16_t));
}

template <class Simd>
void pair_prepare_input(const ConvShape& s, const uint32_t* input, void* scratch, int row_begin,
                        int row_end) {
  const PairMap map(s);
  for (int row = row_begin; row < row_end; ++row) {
    const PaddedRow here(s, input, row), below(s, input, row + s.stride_h);
    expand_row<Simd>(s, map, here, here, s.stride_w, below, 0, (uint16_t*)scratch + row * map.row_stride);
  }
}
