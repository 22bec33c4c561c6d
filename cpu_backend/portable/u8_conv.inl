// First layers: u8 pixels times weights of +1/-1. What all variants share: the unrolled input, the packed
// constants, and the loop over tiles. A variant only adds the sums S = sum w x of a tile.
//
//   acc = sum over taps inside the map of w (mul x + add) = mul S + add sum over taps inside of w
//
// Padding is written as x = 0, so it adds nothing to S; the second term depends on the border class of the
// pixel (see border_classes.inl) and is a constant per class and channel, the "base". mul < 0 is removed by
// negating all weights, so that a threshold T becomes a limit on S:
//   acc >= T  <=>  S >= ceil((T - base) / |mul|);   mul == 0: always or never.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after portable/intrinsics.h and kernel_types.h.
#pragma once

#include "epilogue.inl"
#include "u8_lines.inl"

/// Packed: this header; for each output row and then each output column the offset of its class in the
/// constants; per class and channel (padded to whole blocks) an int32: the limit on S, or for the epilogue
/// form the base; then the weights of the variant.
struct U8Constants {
  int multiplier;  // |input_mul|

  const int* row_offsets() const { return (const int*)(this + 1); }
  const int* column_offsets(const ConvShape& s) const { return row_offsets() + s.out_h; }
};

static inline size_t whole_lines(size_t bytes) { return (bytes + 63) / 64 * 64; }
static inline int block_count(const ConvShape& s) { return (s.out_c + kChannelBlock - 1) / kChannelBlock; }

static inline size_t u8_constants_bytes(const ConvShape& s) {
  return whole_lines(sizeof(U8Constants) + sizeof(int) * ((size_t)s.out_h + s.out_w));
}

/// Channel constants, one per class; only input_add makes classes differ.
static inline int u8_class_count(const ConvShape& s) {
  return s.input_add == 0 ? 1 : row_classes(s, nullptr) * column_classes(s, nullptr);
}

PHONEBIT_RARE static size_t u8_limits_bytes(const ConvShape& s) {
  return sizeof(int32_t) * u8_class_count(s) * block_count(s) * kChannelBlock;
}

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
/// less, and so their bits are 0. What an offset of all bytes takes from the sum of a whole window is put
/// back in the base.
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

#if defined(__x86_64__) || defined(__i386__)
/// Bit i = sum[i] >= limits[i], kLanes of them.
PHONEBIT_INLINE uint32_t u8_threshold_bits(IntVector sum, const int32_t* limits) {
#if defined(__AVX512F__)
  return _mm512_cmpge_epi32_mask((__m512i)sum, _mm512_loadu_si512(limits));
#elif defined(__AVX2__)
  const __m256i less = _mm256_cmpgt_epi32(_mm256_loadu_si256((const __m256i*)limits), (__m256i)sum);
  return 0xff ^ (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(less));
#else
  const __m128i less = _mm_cmpgt_epi32(_mm_loadu_si128((const __m128i*)limits), (__m128i)sum);
  return 0xf ^ (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(less));
#endif
}

/// The same for all vectors, of at most 32 lanes together.
template <int kVectors>
PHONEBIT_INLINE uint32_t u8_threshold_bits(const IntVector (&sums)[kVectors], const int32_t* limits) {
  uint32_t bits = 0;
  unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
    bits |= u8_threshold_bits(sums[j], limits + j * kLanes) << j * kLanes;
  });
  return bits;
}
#else
/// Bit i = sums[i] >= limits[i], of at most 32 lanes together.
template <int kVectors>
PHONEBIT_INLINE uint32_t u8_threshold_bits(const IntVector (&sums)[kVectors], const int32_t* limits) {
  // Every lane owns a bit of the word, so that one sum across lanes serves all vectors.
  WordVector word = {};
  unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
    constexpr uint32_t kFirst = 1u << (j * kLanes);
    const WordVector lane_bits = {kFirst, kFirst << 1, kFirst << 2, kFirst << 3};
    word |= (WordVector)(sums[j] >= load<IntVector>(limits + j * kLanes)) & lane_bits;
  });
#if defined(__aarch64__)
  return vaddvq_u32((uint32x4_t)word);
#else
  return word[0] | word[1] | word[2] | word[3];
#endif
}

PHONEBIT_INLINE uint32_t u8_threshold_bits(IntVector sum, const int32_t* limits) {
  const IntVector sums[1] = {sum};
  return u8_threshold_bits(sums, limits);
}
#endif

/// acc = |mul| * S + base as floats.
PHONEBIT_INLINE FloatVector u8_accumulator(IntVector sum, int multiplier, const int32_t* base) {
  return __builtin_convertvector(sum * multiplier + load<IntVector>(base), FloatVector);
}

/// What one call works on, one block of channels: where windows, constants and results are.
struct U8Block {
  const ConvShape& s;
  const AccumulatorSink& sink;
  const U8Constants& constants;
  const int32_t* limits;  // of class 0
  const uint8_t* lines;
  size_t line_bytes, pixel_bytes;
  int block, channels, taps, pixel_words;

  U8Block(const ConvShape& shape, const void* packed, const void* scratch, const AccumulatorSink& to,
          int block_index)
      : s(shape),
        sink(to),
        constants(*(const U8Constants*)packed),
        lines((const uint8_t*)scratch),
        block(block_index) {
    const U8Line line = u8_line(shape);
    line_bytes = line.line_bytes;
    pixel_bytes = (size_t)line.column_step * line.column_bytes;
    taps = line.window_bytes;
    pixel_words = to.pixel_words;
    limits = (const int32_t*)((const char*)packed + u8_constants_bytes(shape)) + block * kChannelBlock;
    const int left = shape.out_c - block * kChannelBlock;
    channels = left < kChannelBlock ? left : kChannelBlock;
  }
  const uint8_t* window(int y, int x) const { return lines + y * line_bytes + x * pixel_bytes; }
  const int32_t* limits_of(int y, int x) const {
    return limits + constants.row_offsets()[y] + constants.column_offsets(s)[x];
  }
  uint32_t* bits_of(int pixel) const {
    return sink.threshold_bits + (int64_t)pixel * pixel_words + block * (kChannelBlock / 32);
  }
  void store_bits(int pixel, uint64_t bits) const {
    uint32_t* out = bits_of(pixel);
    out[0] = (uint32_t)bits;
    if (channels > 32) out[1] = (uint32_t)(bits >> 32);
  }
  void finish(float* values, int pixel, int count) const {
    apply_epilogue(*sink.epilogue, values, pixel, count, block * kChannelBlock, channels);
  }
};

/// Calls visit(y, x, count) for pieces of output rows of at most kPixels pixels.
template <int kPixels, class Visit>
PHONEBIT_INLINE void for_each_row_piece(const ConvShape& s, const OutputRange& range, const Visit& visit) {
  int y = range.pixel_begin / s.out_w, x = range.pixel_begin % s.out_w;
  for (int left = range.pixel_end - range.pixel_begin; left > 0;) {
    int count = s.out_w - x < kPixels ? s.out_w - x : kPixels;
    if (count > left) count = left;
    visit(y, x, count);
    left -= count;
    x += count;
    if (x == s.out_w) x = 0, y++;
  }
}
