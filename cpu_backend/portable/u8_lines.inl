// The input of u8 convolutions, unrolled so that every window is consecutive bytes.
//
// One line per output row: for each column of the padded map its kernel_h * in_c bytes one after the other,
// so that a window is kernel_w * kernel_h * in_c consecutive bytes. Each byte is copied kernel_h / stride_h
// times, not kernel_h * kernel_w / (stride_h * stride_w) times as im2col would. Windows that do not overlap
// (dilation_w > 1 or a large stride) get their own kernel_w columns each.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after portable/intrinsics.h and kernel_types.h.
#pragma once

#include "padded_values.inl"
#include "simd.inl"

/// Taps are taken this many at a time, four as one 32-bit broadcast; weights of the missing ones are 0.
/// kLineOffset: lines hold x - kLineOffset where the products want signed bytes.
#if defined(PHONEBIT_HAVE_BYTE_DOTS)
constexpr int kTapGroup = kDotTaps, kLineOffset = 128;
#else
constexpr int kTapGroup = 4, kLineOffset = 0;
#endif
/// Bytes behind a line that may be read (a last group of taps, a tile row) or overwritten (a 16-byte store).
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

#if defined(PHONEBIT_SHARED_LINES)
static inline void fill_line(const ConvShape& s, const U8Line&, const uint8_t* input, int y, uint8_t* out) {
  neon_u8_line(s, input, y, out);
}
#else
/// Input row of kernel row ky of output row y, null in the padding.
static inline const uint8_t* u8_input_row(const ConvShape& s, const uint8_t* input, int y, int ky) {
  const int in_y = y * s.stride_h - s.pad_top + ky * s.dilation_h;
  return in_y >= 0 && in_y < s.in_h ? input + (size_t)in_y * s.in_w * s.in_c : nullptr;
}

/// Any shape, byte by byte.
static inline void unroll_line(const ConvShape& s, const U8Line& line, const uint8_t* input, int y,
                               uint8_t* out) {
  for (int ky = 0; ky < s.kernel_h; ky++) {
    const uint8_t* row = u8_input_row(s, input, y, ky);
    uint8_t* to = out + ky * s.in_c;
    for (int column = 0; column < line.columns; column++, to += line.column_bytes) {
      const int first =
          line.shared ? column : column / s.kernel_w * s.stride_w + column % s.kernel_w * s.dilation_w;
      const int x = first - s.pad_left;
      if (row && x >= 0 && x < s.in_w) {
        __builtin_memcpy(to, row + (size_t)x * s.in_c, s.in_c);
      } else {
        __builtin_memset(to, 0, s.in_c);
      }
    }
  }
}

typedef uint32_t QuadVector __attribute__((vector_size(16)));

/// Columns of RGB from four kernel rows: twelve bytes each, at the front of out[column].
PHONEBIT_INLINE void transpose_rgb(const uint8_t* const* rows, size_t offset, ByteVector (&out)[4]) {
  QuadVector row[4];
  unroll<4>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    const ByteVector rgb = rows[i] ? load<ByteVector>(rows[i] + offset) : ByteVector{};
    row[i] =
        (QuadVector)__builtin_shufflevector(rgb, rgb, 0, 1, 2, 15, 3, 4, 5, 15, 6, 7, 8, 15, 9, 10, 11, 15);
  });
  const QuadVector low01 = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
  const QuadVector low23 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
  const QuadVector high01 = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
  const QuadVector high23 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  const QuadVector column[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                                __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                                __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                                __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
  unroll<4>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    const ByteVector v = (ByteVector)column[i];
    out[i] = __builtin_shufflevector(v, v, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
  });
}

/// Four columns of kQuads * 4 kernel rows. Each 16-byte store spills into what the next one writes.
template <int kQuads>
PHONEBIT_INLINE void unroll_four_columns(const uint8_t* const* rows, size_t offset, size_t column_bytes,
                                         uint8_t* out) {
  ByteVector columns[kQuads][4];
  unroll<kQuads>([&](auto q) PHONEBIT_LAMBDA_INLINE { transpose_rgb(rows + 4 * q, offset, columns[q]); });
  unroll<4>([&](auto c) PHONEBIT_LAMBDA_INLINE {
    unroll<kQuads>([&](auto q)
                       PHONEBIT_LAMBDA_INLINE { store(out + c * column_bytes + 12 * q, columns[q][c]); });
  });
}

/// RGB and shared columns: the first layers that matter, four columns at a time.
template <int kQuads>
static inline void unroll_rgb_line(const ConvShape& s, const U8Line& line, const uint8_t* input, int y,
                                   uint8_t* out) {
  const uint8_t* rows[4 * kQuads] = {};
  for (int ky = 0; ky < s.kernel_h; ky++) rows[ky] = u8_input_row(s, input, y, ky);
  const size_t bytes = line.column_bytes;
  const int left = s.pad_left < line.columns ? s.pad_left : line.columns;
  const int inside = line.columns - left < s.in_w ? line.columns - left : s.in_w;
  __builtin_memset(out, 0, left * bytes);
  uint8_t* to = out + left * bytes;
  // A load takes 16 bytes of a row for 12: not at the end of a row, which may be the end of the input.
  int x = 0;
  for (; x + 6 <= s.in_w && x + 4 <= inside; x += 4)
    unroll_four_columns<kQuads>(rows, 3 * x, bytes, to + x * bytes);
  for (; x < inside; x++) {
    for (int ky = 0; ky < s.kernel_h; ky++) {
      for (int c = 0; c < 3; c++) to[x * bytes + 3 * ky + c] = rows[ky] ? rows[ky][3 * x + c] : 0;
    }
  }
  __builtin_memset(to + inside * bytes, 0, (line.columns - left - inside) * bytes);
}

/// The bytes of the line of output row y.
static inline void fill_line(const ConvShape& s, const U8Line& line, const uint8_t* input, int y,
                             uint8_t* out) {
  const bool rgb = s.in_c == 3 && line.shared;
  if (rgb && s.kernel_h <= 4) {
    unroll_rgb_line<1>(s, line, input, y, out);
  } else if (rgb && s.kernel_h <= 8) {
    unroll_rgb_line<2>(s, line, input, y, out);
  } else if (rgb && s.kernel_h <= 12) {
    unroll_rgb_line<3>(s, line, input, y, out);
  } else {
    unroll_line(s, line, input, y, out);
  }
  const size_t used = (size_t)line.columns * line.column_bytes;
  __builtin_memset(out + used, 0, line.line_bytes - used);
}
#endif

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
