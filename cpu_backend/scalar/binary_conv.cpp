// Binary convolution in portable C++: the kernel that supports every machine and every shape.
//
// d = sum over taps and words of popcount(x xor w), 64 channels at a time; acc = base_M - 2 d, see
// portable/border_classes.inl. A run is what lies contiguously both in the map and in the filter: a whole row
// of taps when dilation_w is 1, otherwise one tap.
#include <string.h>

#include "baseline.h"

namespace phonebit::engine::cpu {
namespace {

#include "portable/padded_map.inl"

// Packed: border table, then out_c * classes integers (limits, or bases for the epilogue form), then the
// filters as in the file.
size_t packed_bytes(const ConvShape& s) {
  const size_t per_class = round_up_64(sizeof(int32_t) * s.out_c * border_class_count(s));
  return border_table_bytes(s) + per_class +
         sizeof(uint32_t) * s.out_c * s.kernel_h * s.kernel_w * words(s.in_c);
}

void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed) {
  write_border_table(s, packed);
  const BorderTable& borders = *(const BorderTable*)packed;
  int32_t* per_class = (int32_t*)((char*)packed + border_table_bytes(s));
  const size_t filter_words = (size_t)s.kernel_h * s.kernel_w * words(s.in_c);
  for (int c = 0; c < s.out_c; ++c) {
    for_each_border_class(s, borders, [&](int index, TapSpan rows, TapSpan columns) {
      const int32_t base = border_base(s, weights + c * filter_words, rows, columns);
      int32_t& entry = per_class[(size_t)index * s.out_c + c];
      entry = thresholds != nullptr ? (int32_t)popcount_limit(base, thresholds[c], INT32_MAX) : base;
    });
  }
  char* filters = (char*)per_class + round_up_64(sizeof(int32_t) * s.out_c * borders.count());
  memcpy(filters, weights, sizeof(uint32_t) * s.out_c * filter_words);
}

// Inlined into a caller with the POPCNT instruction where there is one; without it the compiler calls a
// routine.
__attribute__((always_inline)) inline int different_bits(const uint32_t* a, const uint32_t* b, int count) {
  int bits = 0;
  int i = 0;
  for (; i + 2 <= count; i += 2) {
    uint64_t x, y;
    memcpy(&x, a + i, sizeof(x));
    memcpy(&y, b + i, sizeof(y));
    bits += __builtin_popcountll(x ^ y);
  }
  return i < count ? bits + __builtin_popcount(a[i] ^ b[i]) : bits;
}

__attribute__((always_inline)) inline void run_blocks(const ConvShape& s, const void* packed,
                                                      const uint32_t* input, const void* scratch,
                                                      const OutputRange& range, const AccumulatorSink& sink) {
  const BorderTable& borders = *(const BorderTable*)packed;
  const int32_t* per_class = (const int32_t*)((const char*)packed + border_table_bytes(s));
  const uint32_t* filters =
      (const uint32_t*)((const char*)per_class + round_up_64(sizeof(int32_t) * s.out_c * borders.count()));
  const WindowMap map = window_map(s, input, scratch);
  const int words_in = words(s.in_c);
  const int runs_in_row = s.dilation_w == 1 ? 1 : s.kernel_w;
  const int run_words = s.dilation_w == 1 ? s.kernel_w * words_in : words_in;
  const size_t filter_words = (size_t)s.kernel_h * s.kernel_w * words_in;

  for (int block = range.block_begin; block < range.block_end; ++block) {
    const int channel0 = block * kChannelBlock;
    const int channels = s.out_c - channel0 < kChannelBlock ? s.out_c - channel0 : kChannelBlock;
    for (int pixel = range.pixel_begin; pixel < range.pixel_end; ++pixel) {
      const int y = pixel / s.out_w, x = pixel % s.out_w;
      const uint32_t* window =
          map.words + (size_t)y * s.stride_h * map.row_stride + (size_t)x * s.stride_w * map.pixel_stride;
      const int32_t* entry = per_class + (size_t)borders.class_of(s, y, x) * s.out_c + channel0;
      uint32_t bits[kChannelBlock / 32] = {0, 0};
      float values[kChannelBlock];
      for (int c = 0; c < channels; ++c) {
        const uint32_t* filter = filters + (channel0 + c) * filter_words;
        int different = 0;
        for (int ky = 0; ky < s.kernel_h; ++ky) {
          const uint32_t* row = window + (size_t)ky * s.dilation_h * map.row_stride;
          for (int run = 0; run < runs_in_row; ++run) {
            different += different_bits(row + (size_t)run * s.dilation_w * words_in, filter, run_words);
            filter += run_words;
          }
        }
        values[c] = (float)(entry[c] - 2 * different);
        bits[c / 32] |= (uint32_t)(different < entry[c]) << (c % 32);
      }
      if (sink.threshold_bits != nullptr) {
        uint32_t* out = sink.threshold_bits + (size_t)pixel * sink.pixel_words + channel0 / 32;
        memcpy(out, bits, sizeof(uint32_t) * words(channels));
      } else {
        apply_epilogue(*sink.epilogue, values, pixel, 1, channel0, channels);
      }
    }
  }
}

void run(const ConvShape& s, const void* packed, const uint32_t* input, const void* scratch,
         const OutputRange& range, const AccumulatorSink& sink) {
  run_blocks(s, packed, input, scratch, range, sink);
}

#if defined(__x86_64__)
// POPCNT is not part of baseline x86-64, though nothing since 2008 lacks it.
__attribute__((target("popcnt"))) void run_popcnt(const ConvShape& s, const void* packed,
                                                  const uint32_t* input, const void* scratch,
                                                  const OutputRange& range, const AccumulatorSink& sink) {
  run_blocks(s, packed, input, scratch, range, sink);
}
#endif

}  // namespace

extern const BinaryConvKernel kAnyConv_scalar = {
    "bconv2d_b64__scalar", packed_bytes, pack_weights, padded_bytes, padded_rows, pad_input, run};
#if defined(__x86_64__)
extern const BinaryConvKernel kPopcntConv_scalar = {
    "bconv2d_b64__popcnt", packed_bytes, pack_weights, padded_bytes, padded_rows, pad_input, run_popcnt};
#endif

}  // namespace phonebit::engine::cpu
