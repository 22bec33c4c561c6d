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
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

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

/// Bit i = sums[i] >= limits[i], of at most 32 lanes together.
template <int kVectors>
PHONEBIT_INLINE uint32_t u8_threshold_bits(const IntVector (&sums)[kVectors], const int32_t* limits) {
  IntVector limit[kVectors];
  unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE { limit[j] = load<IntVector>(limits + j * kLanes); });
  return (uint32_t)greater_equal_bits(sums, limit);
}

PHONEBIT_INLINE uint32_t u8_threshold_bits(IntVector sum, const int32_t* limits) {
  return greater_equal_bits(sum, load<IntVector>(limits));
}

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
