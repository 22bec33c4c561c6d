// The input of u8 convolutions, unrolled so that every window is consecutive bytes.
//
// One line per output row: for each column of the padded map its kernel_h * in_c bytes one after the other,
// so that a window is kernel_w * kernel_h * in_c consecutive bytes. Each byte is copied kernel_h / stride_h
// times, not kernel_h * kernel_w / (stride_h * stride_w) times as im2col would. Windows that do not overlap
// (dilation_w > 1 or a large stride) get their own kernel_w columns each.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after u8_products.inl or u8_dots.inl.
#pragma once

#include "padded_values.inl"

/// Bytes after a line that may be read (a last group of taps, a tile row) or overwritten (a 16-byte store).
constexpr int kLineSlack = 64;

typedef uint8_t ByteVector __attribute__((vector_size(16)));

struct U8Line {
  bool shared;       // neighbouring windows overlap in the line
  int column_bytes;  // kernel_h * in_c
  int columns;       // in one line
  int column_step;   // columns from one output pixel to the next
  int window_bytes;  // kernel_w * column_bytes
  size_t line_bytes;
};

static inline U8Line u8_line(const ConvShape& s) {
  U8Line line;
  line.shared = s.dilation_w == 1 && s.stride_w < s.kernel_w;
  line.column_bytes = s.kernel_h * s.in_c;
  line.columns = line.shared ? map_columns(s) : s.out_w * s.kernel_w;
  line.column_step = line.shared ? s.stride_w : s.kernel_w;
  line.window_bytes = s.kernel_w * line.column_bytes;
  line.line_bytes = ((size_t)line.columns * line.column_bytes + kLineSlack + 63) / 64 * 64;
  return line;
}

static inline int tap_groups(const ConvShape& s, int group = kTapGroup) {
  return (s.kernel_h * s.kernel_w * s.in_c + group - 1) / group;
}

static size_t u8_scratch_bytes(const ConvShape& s) { return s.out_h * u8_line(s).line_bytes; }

static int u8_prepare_rows(const ConvShape& s) { return s.out_h; }

/// The bytes of the line of output row y; defined in u8_packing.inl or neon/shared_bytes.inl.
static inline void fill_line(const ConvShape& s, const U8Line& line, const uint8_t* input, int y,
                             uint8_t* out);

/// The line of output row y.
static inline void unroll_row(const ConvShape& s, const U8Line& line, const uint8_t* input, int y,
                              uint8_t* out) {
  fill_line(s, line, input, y, out);
  if constexpr (kLineOffset != 0) {
    for (size_t i = 0; i < line.line_bytes; i += sizeof(ByteVector))
      store(out + i, load<ByteVector>(out + i) - (uint8_t)kLineOffset);
  }
}

static void u8_prepare_input(const ConvShape& s, const uint8_t* input, void* scratch, int row_begin,
                             int row_end) {
  const U8Line line = u8_line(s);
  for (int y = row_begin; y < row_end; y++)
    unroll_row(s, line, input, y, (uint8_t*)scratch + y * line.line_bytes);
}
