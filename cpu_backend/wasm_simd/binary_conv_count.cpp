// @kernel   bconv2d_b32__wasmcnt   binary convolution, threshold or epilogue fused, any shape
// @math     d = sum over taps and words of popcount(x xor w);  acc = base_M - 2 d (border_classes.inl)
// @in       packed bits [H][W][words(Cin)]; a padded copy in scratch where a window reaches over the edge
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [border table][per block, per class: 64 x i32][Cout/64][step of 8 channels][64 x u8]
// @source   own; neon/binary_conv_count.cpp in WebAssembly's instructions
//
// A step is 8 channels of a tap: one byte of a pixel, in all lanes of a vector, against one byte of each of
// 64 filters. No sum crosses lanes. A byte holds counts of 31 steps, 16 bits those of a part of the window.
#include <string.h>

#include "epilogue.h"
#include "select.h"
#include "simd/wasm.h"

namespace phonebit::engine::cpu {
namespace {

#include "portable/padded_map.inl"

constexpr int kVectors = kChannelBlock / 16;
constexpr int kTilePixels = kWasmPixels;
constexpr int kChunkSteps = 28;                // 28 * 8 <= 255; runs are whole words, so 4 steps at a time
constexpr int kPartSteps = kChunkSteps * 256;  // 8 of each: below 65536

/// A window is `count` runs of `length` bytes that lie together in the map: rows of taps, or single taps if dilated.
struct Runs {
  int per_row, count, length;
  int64_t row_step = 0, column_step = 0;  // bytes

  explicit Runs(const ConvShape& s)
      : per_row(s.dilation_w == 1 ? 1 : s.kernel_w),
        count(s.kernel_h * per_row),
        length((s.dilation_w == 1 ? s.kernel_w : 1) * words(s.in_c) * 4) {}
  Runs(const ConvShape& s, const WindowMap& map) : Runs(s) {
    row_step = 4 * (int64_t)s.dilation_h * (int64_t)map.row_stride;
    column_step = 4 * (int64_t)s.dilation_w * (int64_t)map.pixel_stride;
  }
  size_t offset(int run) const { return (size_t)(run / per_row * row_step + run % per_row * column_step); }
  int64_t steps() const { return (int64_t)count * length; }
};

int block_count(const ConvShape& s) { return (s.out_c + kChannelBlock - 1) / kChannelBlock; }

size_t entries_bytes(const ConvShape& s) {
  return border_table_bytes(s) + sizeof(int32_t) * kChannelBlock * border_class_count(s) * block_count(s);
}

size_t packed_bytes(const ConvShape& s) {
  return entries_bytes(s) + (size_t)Runs(s).steps() * kChannelBlock * block_count(s);
}

void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed) {
  write_border_table(s, packed);
  const BorderTable& borders = *(const BorderTable*)packed;
  int32_t* entries = (int32_t*)((char*)packed + border_table_bytes(s));
  uint8_t* bytes = (uint8_t*)packed + entries_bytes(s);
  const int64_t steps = Runs(s).steps();
  for (int c = 0; c < block_count(s) * kChannelBlock; ++c) {
    const bool exists = c < s.out_c;  // a filter that does not exist repeats the last one
    const int block = c / kChannelBlock, lane = c % kChannelBlock;
    const uint32_t* filter = weights + (exists ? c : s.out_c - 1) * (steps / 4);
    for_each_border_class(s, borders, [&](int index, TapSpan rows, TapSpan columns) {
      int32_t& entry = entries[((size_t)block * borders.count() + index) * kChannelBlock + lane];
      entry = border_base(s, filter, rows, columns);
      // The limit 0 keeps the bit of a filter that does not exist off.
      if (thresholds) entry = exists ? (int32_t)popcount_limit(entry, thresholds[c], INT32_MAX) : 0;
    });
    uint8_t* out = bytes + steps * kChannelBlock * block + lane;
    for (int64_t i = 0; i < steps; ++i) out[i * kChannelBlock] = (uint8_t)(filter[i / 4] >> (8 * (i % 4)));
  }
}

template <int kPixels, class Body>
PHONEBIT_INLINE void each_vector(const Body& body) {
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](int q) PHONEBIT_LAMBDA_INLINE { body(p, q); });
  });
}

/// Adds the counts of `steps` steps, at most kChunkSteps, to sums of 16 bits: low halves of the vectors, then high.
template <int kPixels>
PHONEBIT_INLINE void count_chunk(const uint8_t* const (&from)[kPixels], const uint8_t* weights, int steps,
                                 v128_t (&sums)[kPixels][2 * kVectors]) {
  v128_t bytes[kPixels][kVectors];
  each_vector<kPixels>([&](int p, int q) PHONEBIT_LAMBDA_INLINE { bytes[p][q] = wasm_i8x16_splat(0); });
  for (int i = 0; i < steps; ++i, weights += kChannelBlock) {
    v128_t x[kPixels];
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { x[p] = wasm_v128_load8_splat(from[p] + i); });
    unroll<kVectors>([&](int q) PHONEBIT_LAMBDA_INLINE {
      const v128_t w = wasm_v128_load(weights + 16 * q);
      unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
        bytes[p][q] = wasm_i8x16_add(bytes[p][q], wasm_i8x16_popcnt(wasm_v128_xor(x[p], w)));
      });
    });
  }
  each_vector<kPixels>([&](int p, int q) PHONEBIT_LAMBDA_INLINE {
    sums[p][2 * q] = wasm_i16x8_add(sums[p][2 * q], wasm_u16x8_extend_low_u8x16(bytes[p][q]));
    sums[p][2 * q + 1] = wasm_i16x8_add(sums[p][2 * q + 1], wasm_u16x8_extend_high_u8x16(bytes[p][q]));
  });
}

/// Adds sums of 16 bits to counts[kPixels][kChannelBlock] and clears them.
template <int kPixels>
PHONEBIT_INLINE void widen(v128_t (&sums)[kPixels][2 * kVectors], int32_t* counts) {
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
    unroll<2 * kVectors>([&](int i) PHONEBIT_LAMBDA_INLINE {
      int32_t* to = counts + p * kChannelBlock + 8 * i;
      const v128_t low = wasm_u32x4_extend_low_u16x8(sums[p][i]),
                   high = wasm_u32x4_extend_high_u16x8(sums[p][i]);
      wasm_v128_store(to, wasm_i32x4_add(wasm_v128_load(to), low));
      wasm_v128_store(to + 4, wasm_i32x4_add(wasm_v128_load(to + 4), high));
      sums[p][i] = wasm_i16x8_splat(0);
    });
  });
}

/// counts[kPixels][kChannelBlock] = the windows' differing bits.
template <int kPixels>
PHONEBIT_INLINE void count_windows(const Runs& runs, const uint8_t* const (&windows)[kPixels],
                                   const uint8_t* weights, int32_t* counts) {
  memset(counts, 0, sizeof(int32_t) * kPixels * kChannelBlock);
  v128_t sums[kPixels][2 * kVectors] = {};
  int room = kPartSteps;
  for (int run = 0; run < runs.count; ++run) {
    const size_t offset = runs.offset(run);
    for (int first = 0, steps; first < runs.length; first += steps, weights += steps * kChannelBlock) {
      steps = runs.length - first < kChunkSteps ? runs.length - first : kChunkSteps;
      if (room < steps) {
        widen<kPixels>(sums, counts);
        room = kPartSteps;
      }
      room -= steps;
      const uint8_t* from[kPixels];
      unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { from[p] = windows[p] + offset + first; });
      count_chunk<kPixels>(from, weights, steps, sums);
    }
  }
  widen<kPixels>(sums, counts);
}

/// Bit c: count c is below limits[c], of 32.
PHONEBIT_INLINE uint32_t bits_below(const int32_t* counts, const int32_t* limits) {
  uint32_t bits = 0;
  for (int c = 0; c < 32; c += 4)
    bits |= wasm_i32x4_bitmask(wasm_i32x4_lt(wasm_v128_load(counts + c), wasm_v128_load(limits + c))) << c;
  return bits;
}

template <int kPixels>
PHONEBIT_NOINLINE void run_block(const ConvShape& s, const void* packed, const WindowMap& map, int begin,
                                 int end, int block, const AccumulatorSink& sink) {
  const BorderTable& borders = *(const BorderTable*)packed;
  const Runs runs(s, map);
  const int32_t* entries = (const int32_t*)((const char*)packed + border_table_bytes(s)) +
                           (size_t)block * borders.count() * kChannelBlock;
  const uint8_t* weights = (const uint8_t*)packed + entries_bytes(s) + runs.steps() * kChannelBlock * block;
  const int rest = s.out_c - block * kChannelBlock, channels = rest < kChannelBlock ? rest : kChannelBlock;
  alignas(16) int32_t counts[kPixels][kChannelBlock];
  alignas(16) float values[kPixels][kChannelBlock];
  int y = begin / s.out_w, x = begin % s.out_w;
  for (int pixel = begin; pixel < end; pixel += kPixels) {
    const int pixels = end - pixel < kPixels ? end - pixel : kPixels;
    const uint8_t* windows[kPixels];
    const int32_t* of_class[kPixels];
    for (int p = 0; p < kPixels; ++p) {
      windows[p] = (const uint8_t*)(map.words + (size_t)y * s.stride_h * map.row_stride +
                                    (size_t)x * s.stride_w * map.pixel_stride);
      of_class[p] = entries + (size_t)borders.class_of(s, y, x) * kChannelBlock;
      // A pixel beyond the range repeats the last one and is not written.
      if (pixel + p + 1 < end && ++x == s.out_w) x = 0, ++y;
    }
    count_windows<kPixels>(runs, windows, weights, counts[0]);
    for (int p = 0; p < pixels; ++p) {
      if (sink.threshold_bits) {
        uint32_t* out =
            sink.threshold_bits + (size_t)(pixel + p) * sink.pixel_words + block * (kChannelBlock / 32);
        for (int word = 0; word < words(channels); ++word)
          out[word] = bits_below(counts[p] + 32 * word, of_class[p] + 32 * word);
        continue;
      }
      for (int c = 0; c < kChannelBlock; c += kLanes) {
        const IntVector count = load<IntVector>(counts[p] + c), base = load<IntVector>(of_class[p] + c);
        store(values[p] + c, __builtin_convertvector(base - 2 * count, FloatVector));
      }
    }
    if (!sink.threshold_bits)
      wasm_simd_epilogue(*sink.epilogue, values[0], pixel, pixels, block * kChannelBlock, channels);
  }
}

void run(const ConvShape& s, const void* packed, const uint32_t* input, const void* scratch,
         const OutputRange& range, const AccumulatorSink& sink) {
  const WindowMap map = window_map(s, input, scratch);
  const auto of_block = is_one_pixel(s) ? run_block<1> : run_block<kTilePixels>;
  for (int block = range.block_begin; block < range.block_end; ++block)
    of_block(s, packed, map, range.pixel_begin, range.pixel_end, block, sink);
}

}  // namespace

extern const BinaryConvKernel kCountConv_wasm = {
    "bconv2d_b32__wasmcnt", packed_bytes, pack_weights, padded_bytes, padded_rows, pad_input, run};

}  // namespace phonebit::engine::cpu
