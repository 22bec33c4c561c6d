// The map that popcount kernels read: the input itself, or a copy in scratch with the padding written as
// bits.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after kernel_types.h.
#pragma once

#include "border_classes.inl"

/// Rows and columns that windows touch; the last ones may be padding or input, whatever the stride leaves.
static inline int touched_rows(const ConvShape& s) {
  return (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
}

static inline int touched_columns(const ConvShape& s) {
  return (s.out_w - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1;
}

/// The map that windows slide over: the pixel of tap (0, 0) of output (y, x) is (y * stride_h, x * stride_w).
struct WindowMap {
  const uint32_t* words;
  size_t row_stride;    // words
  size_t pixel_stride;  // words
  size_t word_stride;   // words; 1 where a pixel's words lie together
};

static inline size_t round_up_64(size_t bytes) { return (bytes + 63) / 64 * 64; }

static inline size_t padded_bytes(const ConvShape& s) {
  if (!reaches_padding(s)) return 0;
  return round_up_64((size_t)touched_rows(s) * touched_columns(s) * words(s.in_c) * sizeof(uint32_t));
}

static inline int padded_rows(const ConvShape& s) { return reaches_padding(s) ? touched_rows(s) : 0; }

/// `pixels` pixels of padding: all channels +1 for pad_value +1, else all bits 0; tail bits stay 0.
static inline void fill_padding(const ConvShape& s, uint32_t* out, int pixels) {
  const int words_in = words(s.in_c);
  if (s.pad_value != 1) {
    __builtin_memset(out, 0, (size_t)pixels * words_in * sizeof(uint32_t));
    return;
  }
  const int tail = s.in_c % 32;
  const uint32_t last = tail == 0 ? 0xffffffffu : (1u << tail) - 1;
  for (int p = 0; p < pixels; ++p) {
    for (int i = 0; i < words_in; ++i) *out++ = i == words_in - 1 ? last : 0xffffffffu;
  }
}

/// `width` pixels of row y of the padded map. Returns whether there is more than padding.
static inline bool pad_row(const ConvShape& s, const uint32_t* input, int y, int width, uint32_t* out) {
  const int words_in = words(s.in_c);
  const int in_y = y - s.pad_top;
  if (in_y < 0 || in_y >= s.in_h) {
    fill_padding(s, out, width);
    return false;
  }
  const int left = s.pad_left < width ? s.pad_left : width;
  const int inside = width - left < s.in_w ? width - left : s.in_w;
  fill_padding(s, out, left);
  __builtin_memcpy(out + (size_t)left * words_in, input + (size_t)in_y * s.in_w * words_in,
                   (size_t)inside * words_in * sizeof(uint32_t));
  fill_padding(s, out + (size_t)(left + inside) * words_in, width - left - inside);
  return true;
}

static inline void pad_input(const ConvShape& s, const uint32_t* input, void* scratch, int row_begin,
                             int row_end) {
  const int width = touched_columns(s);
  for (int y = row_begin; y < row_end; ++y)
    pad_row(s, input, y, width, (uint32_t*)scratch + (size_t)y * width * words(s.in_c));
}

static inline WindowMap window_map(const ConvShape& s, const uint32_t* input, const void* scratch) {
  const size_t words_in = words(s.in_c);
  if (!reaches_padding(s)) return {input, s.in_w * words_in, words_in, 1};
  return {(const uint32_t*)scratch, touched_columns(s) * words_in, words_in, 1};
}

/// Border classes inside packed weights: this header, then out_h row classes, then out_w column classes.
struct BorderTable {
  int row_count, column_count;

  const int* rows() const { return (const int*)(this + 1); }
  const int* columns(const ConvShape& s) const { return rows() + s.out_h; }
  int count() const { return row_count * column_count; }
  int class_of(const ConvShape& s, int y, int x) const { return rows()[y] * column_count + columns(s)[x]; }
};

static inline size_t border_table_bytes(const ConvShape& s) {
  return round_up_64(sizeof(BorderTable) + sizeof(int) * ((size_t)s.out_h + s.out_w));
}

static inline int border_class_count(const ConvShape& s) {
  return row_classes(s, nullptr) * column_classes(s, nullptr);
}

static inline void write_border_table(const ConvShape& s, void* packed) {
  BorderTable* table = (BorderTable*)packed;
  int* rows = (int*)(table + 1);
  table->row_count = row_classes(s, rows);
  table->column_count = column_classes(s, rows + s.out_h);
}

/// Calls visit(class, row span, column span) for each border class, with a window that represents it.
template <class Visit>
static inline void for_each_border_class(const ConvShape& s, const BorderTable& table, Visit visit) {
  for (int y = 0; y < s.out_h; ++y) {
    if (y > 0 && table.rows()[y] == table.rows()[y - 1]) continue;
    for (int x = 0; x < s.out_w; ++x) {
      if (x > 0 && table.columns(s)[x] == table.columns(s)[x - 1]) continue;
      visit(table.class_of(s, y, x), row_span(s, y), column_span(s, x));
    }
  }
}
