// What first layers do once per layer: lines and weights.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after u8_products.inl.
#pragma once

#include "u8_conv.inl"

/// Weight of tap (ky, kx, c) of a filter in the file's layout, after input_mul's sign went into it.
static inline int u8_weight(const ConvShape& s, const uint32_t* filter, int ky, int kx, int c) {
  const uint32_t word = filter[(ky * s.kernel_w + kx) * words(s.in_c) + c / 32];
  const int weight = (word >> (c % 32) & 1) ? 1 : -1;
  return s.input_mul < 0 ? -weight : weight;
}

static inline int64_t ceil_divide(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

static inline int32_t u8_limit(const ConvShape& s, int64_t base, int32_t threshold) {
  const int64_t need = threshold - base;
  if (s.input_mul == 0) return need <= 0 ? INT32_MIN : INT32_MAX;
  const int64_t limit = ceil_divide(need, s.input_mul < 0 ? -(int64_t)s.input_mul : s.input_mul);
  return limit < INT32_MIN ? INT32_MIN : limit > INT32_MAX ? INT32_MAX : (int32_t)limit;
}

/// The sum of a filter's weights over some taps, as u8_weight has them.
static inline int64_t u8_weight_sum(const ConvShape& s, const uint32_t* filter, TapSpan rows,
                                    TapSpan columns) {
  int64_t sum = 0;
  for (int ky = rows.begin; ky < rows.end; ky++) {
    for (int kx = columns.begin; kx < columns.end; kx++) {
      for (int i = 0; i < s.in_c; i++) sum += u8_weight(s, filter, ky, kx, i);
    }
  }
  return sum;
}

/// Everything in front of the weights. Channels beyond out_c only fill the last block: their sums are 0 or
/// less, and so their bits are 0. What an offset of all bytes subtracts from the sum of a whole window is added
/// to the base.
PHONEBIT_RARE static inline void u8_pack_constants(const ConvShape& s, const uint32_t* weights,
                                                   const int32_t* thresholds, void* packed,
                                                   int offset = kLineOffset) {
  U8Constants* constants = (U8Constants*)packed;
  constants->multiplier = s.input_mul < 0 ? -s.input_mul : s.input_mul;
  const int channels = block_count(s) * kChannelBlock;
  int* rows = (int*)(constants + 1);
  int* columns = rows + s.out_h;
  row_classes(s, rows);
  const int column_count = column_classes(s, columns);
  const int used = s.input_add == 0 ? 0 : channels;  // with nothing to add there is one class
  for (int y = 0; y < s.out_h; y++) rows[y] *= column_count * used;
  for (int x = 0; x < s.out_w; x++) columns[x] *= used;
  int32_t* limits = (int32_t*)((char*)packed + u8_constants_bytes(s));
  const size_t filter_words = (size_t)s.kernel_h * s.kernel_w * words(s.in_c);
  const int sign = s.input_mul < 0 ? -1 : 1;
  const TapSpan all_rows = {0, s.kernel_h}, all_columns = {0, s.kernel_w};
  for (int y = 0; y < s.out_h; y++) {
    if (y > 0 && rows[y] == rows[y - 1]) continue;
    for (int x = 0; x < s.out_w; x++) {
      if (x > 0 && columns[x] == columns[x - 1]) continue;
      const TapSpan in_rows = row_span(s, y), in_columns = column_span(s, x);
      int32_t* limit = limits + rows[y] + columns[x];
      for (int c = 0; c < channels; c++) {
        limit[c] = thresholds ? INT32_MAX : 0;
        if (c >= s.out_c) continue;
        const uint32_t* filter = weights + c * filter_words;
        int64_t base = sign * u8_weight_sum(s, filter, in_rows, in_columns) * s.input_add;
        if (offset != 0) {
          base += offset * u8_weight_sum(s, filter, all_rows, all_columns) * constants->multiplier;
        }
        limit[c] = thresholds ? u8_limit(s, base, thresholds[c]) : (int32_t)base;
      }
    }
  }
}

/// Calls put(channel, tap, weight) for all taps in the order of the unrolled window; the variant stores them.
template <class Put>
static inline void for_each_u8_weight(const ConvShape& s, const uint32_t* weights, const Put& put) {
  const size_t filter_words = (size_t)s.kernel_h * s.kernel_w * words(s.in_c);
  for (int channel = 0; channel < s.out_c; channel++) {
    int tap = 0;
    for (int kx = 0; kx < s.kernel_w; kx++) {
      for (int ky = 0; ky < s.kernel_h; ky++) {
        for (int c = 0; c < s.in_c; c++, tap++)
          put(channel, tap, u8_weight(s, weights + channel * filter_words, ky, kx, c));
      }
    }
  }
}

/// direct_pack_weights for groups of so many taps, lines that hold x - offset, and bytes for +1 and -1.
PHONEBIT_RARE static inline void direct_pack(const ConvShape& s, const uint32_t* weights,
                                             const int32_t* thresholds, void* packed, int tap_group,
                                             int offset, int positive, int negative) {
  u8_pack_constants(s, weights, thresholds, packed, offset);
  uint8_t* filters = (uint8_t*)packed + u8_constants_bytes(s) + u8_limits_bytes(s);
  const size_t block_bytes = (size_t)tap_groups(s, tap_group) * kChannelBlock * tap_group;
  __builtin_memset(filters, 0, block_count(s) * block_bytes);
  for_each_u8_weight(s, weights, [&](int channel, int tap, int weight) {
    uint8_t* group =
        filters + channel / kChannelBlock * block_bytes + tap / tap_group * kChannelBlock * tap_group;
    const int value = weight > 0 ? positive : negative;
    group[channel % kChannelBlock * tap_group + tap % tap_group] = (uint8_t)value;
  });
}

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
  unroll<4>([&](int i) PHONEBIT_LAMBDA_INLINE {
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
  unroll<4>([&](int i) PHONEBIT_LAMBDA_INLINE {
    const ByteVector v = (ByteVector)column[i];
    out[i] = __builtin_shufflevector(v, v, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
  });
}

/// Four columns of kQuads * 4 kernel rows. Each 16-byte store spills into what the next one writes.
template <int kQuads>
PHONEBIT_INLINE void unroll_four_columns(const uint8_t* const* rows, size_t offset, size_t column_bytes,
                                         uint8_t* out) {
  ByteVector columns[kQuads][4];
  unroll<kQuads>([&](int q) PHONEBIT_LAMBDA_INLINE { transpose_rgb(rows + 4 * q, offset, columns[q]); });
  unroll<4>([&](int c) PHONEBIT_LAMBDA_INLINE {
    unroll<kQuads>([&](int q)
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
  // A load reads 16 bytes of a row for 12: not at the end of a row, which may be the end of the input.
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
