// Convolution in 8-bit integers, groups == 1: inputs become integers from -127 to 127, weights are such.
//
//   q(x) = nearest integer of x * multiplier, limited to +-127
//   v[p][c] = (float)(sum over k of q(x[p][k]) w[c][k]) * (scale * scales[c])
//
// The sum is exact, so every ISA, tile and split gives the same bits. Where inputs are integers already, the
// multiplier and all scales are 1 and sums stay below 2^24, v is what a chain of float32 multiply-adds gives:
// each of its steps is exact.
//
// Inputs are quantized into a map of MapValue with zeros around it. What lies contiguously there is a run, as
// in f32_conv.inl; a run is read in groups of kGroupTaps taps, the last of which may reach into its neighbour:
// its weights there are 0. Weights: slices of at most kByteVectors vectors of output channels, each
// [run][group][channel][kGroupTaps].
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after f32_conv.inl and, where the processor has it,
// byte_dots.inl.
#pragma once

#include "f32_conv.inl"
#if defined(PHONEBIT_HAVE_BYTE_DOTS)
template <int kPixels, int kVectors>
using ByteTileSums = DotTile<kPixels, kVectors>;
using MapValue = uint8_t;
constexpr int kGroupTaps = kDotTaps, kByteOffset = 0;
#else
#include "i8_products.inl"
#endif

#if defined(__AVX512F__)
constexpr int kByteVectors = 4, kBytePixels = 6;  // 24 + 4 of 32 registers, one for inputs
#elif defined(PHONEBIT_HAVE_BYTE_DOTS)
constexpr int kByteVectors = 4, kBytePixels = 4;  // 16 + 4 of 32, one for weights
#elif defined(__aarch64__)
constexpr int kByteVectors = 2, kBytePixels = 4;  // 16 + 2 of 32: sums are pairs of registers
#elif defined(__AVX2__)
constexpr int kByteVectors = 2, kBytePixels = 6;  // 12 + 2 of 16, one for inputs
#else
constexpr int kByteVectors = 2, kBytePixels = 2;  // 4 + 4 of 16
#endif

static inline RunGeometry byte_runs(const ConvShape& s) {
  const size_t channels = s.in_c;
  return run_geometry(s, {nullptr, map_columns(s) * channels, channels});
}

/// Groups of taps in a window, each run's last one filled up.
static inline size_t window_groups(const ConvShape& s, int group_taps = kGroupTaps) {
  const RunGeometry runs = byte_runs(s);
  return (size_t)s.kernel_h * runs.runs_per_row * ((runs.run_length + group_taps - 1) / group_taps);
}

static inline size_t whole_vectors(const ConvShape& s) { return (s.out_c + kLanes - 1) / kLanes * kLanes; }

/// Bytes of one number a channel, up to where the next array begins.
static inline size_t channel_array_bytes(const ConvShape& s) {
  return (whole_vectors(s) * sizeof(float) + 63) / 64 * 64;
}

/// Packed: what the sums begin with, and the scale, of each channel; then the weights.
struct ByteConstants {
  const int32_t* starts;
  const float* scales;
  const int8_t* weights;

  ByteConstants(const ConvShape& s, const void* packed) {
    const size_t bytes = channel_array_bytes(s);
    starts = (const int32_t*)packed;
    scales = (const float*)((const char*)packed + bytes);
    weights = (const int8_t*)packed + 2 * bytes;
  }
};

PHONEBIT_RARE static size_t i8_packed_bytes(const ConvShape& s) {
  return 2 * channel_array_bytes(s) + window_groups(s) * whole_vectors(s) * kGroupTaps;
}

static inline int byte_slice_vectors(const ConvShape& s, int channel, int most = kByteVectors) {
  const int left = (s.out_c - channel + kLanes - 1) / kLanes;
  return left < most ? left : most;
}

/// i8_pack_weights for groups of so many taps and slices of so many vectors.
PHONEBIT_RARE static inline void pack_bytes(const ConvShape& s, const int8_t* weights, const float* scales,
                                            void* packed, int group_taps, int most_vectors) {
  const ByteConstants at(s, packed);
  const RunGeometry runs = byte_runs(s);
  const int run_count = s.kernel_h * runs.runs_per_row;
  const size_t taps = window_taps(s), groups = window_groups(s, group_taps);
  __builtin_memset(packed, 0, 2 * channel_array_bytes(s) + groups * whole_vectors(s) * group_taps);
  for (int channel = 0, lanes; channel < s.out_c; channel += lanes) {
    lanes = byte_slice_vectors(s, channel, most_vectors) * kLanes;
    int8_t* slice = (int8_t*)at.weights + channel * groups * group_taps;
    for (int lane = 0; lane < lanes && channel + lane < s.out_c; lane++) {
      const int8_t* from = weights + (channel + lane) * taps;
      int8_t* to = slice + lane * group_taps;
      int32_t sum = 0;
      for (int run = 0; run < run_count; run++) {
        for (int tap = 0; tap < runs.run_length; tap++, from++) {
          to[tap / group_taps * lanes * group_taps + tap % group_taps] = *from;
          sum += *from;
        }
        to += (runs.run_length + group_taps - 1) / group_taps * lanes * group_taps;
      }
      ((int32_t*)at.starts)[channel + lane] = -kByteOffset * sum;
      ((float*)at.scales)[channel + lane] = scales ? scales[channel + lane] : 1.0f;
    }
  }
}

static void i8_pack_weights(const ConvShape& s, const int8_t* weights, const float* scales, void* packed) {
#if defined(PHONEBIT_SHARED_BYTES)
  neon_pack_bytes(s, weights, scales, packed, kGroupTaps, kByteVectors);
#else
  pack_bytes(s, weights, scales, packed, kGroupTaps, kByteVectors);
#endif
}

/// What the last group may read behind the map.
constexpr int kMapSlack = 7;
static_assert(kGroupTaps <= kMapSlack + 1);

static size_t i8_scratch_bytes(const ConvShape& s) {
  return ((size_t)map_rows(s) * map_columns(s) * s.in_c + kMapSlack) * sizeof(MapValue);
}

static int i8_prepare_rows(const ConvShape& s) { return map_rows(s); }

#if defined(PHONEBIT_SHARED_BYTES)
constexpr auto i8_largest = neon_largest;
constexpr auto i8_prepare_input = neon_prepare_bytes;
#else
static float i8_largest(const float* values, size_t count) {
  FloatVector largest = {};
  size_t i = 0;
  const auto add = [&](FloatVector v) PHONEBIT_LAMBDA_INLINE {
    largest = maximum(maximum(v, broadcast(0.0f) - v), largest);
  };
  for (; i + kLanes <= count; i += kLanes) add(load(values + i));
  if (i < count) add(load_partial(values + i, (int)(count - i)));
  float lanes[kLanes], result = 0.0f;
  store(lanes, largest);
  for (const float lane : lanes) result = lane > result ? lane : result;
  return result;
}

/// kLanes values of the map; NaN becomes -127.
typedef MapValue MapVector __attribute__((vector_size(kLanes * sizeof(MapValue))));
PHONEBIT_INLINE MapVector quantized_values(FloatVector x, FloatVector multiplier) {
  const FloatVector limited = minimum(maximum(x * multiplier, broadcast(-127.0f)), broadcast(127.0f));
  const IntVector whole = __builtin_convertvector(nearest_integer(limited), IntVector);
  return __builtin_convertvector(whole + kByteOffset, MapVector);
}

static inline void quantize_run(const float* from, size_t count, float multiplier, MapValue* to) {
  const FloatVector factor = broadcast(multiplier);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(to + i, quantized_values(load(from + i), factor));
  if (i == count) return;
  MapValue last[kLanes];
  store(last, quantized_values(load_partial(from + i, (int)(count - i)), factor));
  __builtin_memcpy(to + i, last, (count - i) * sizeof(MapValue));
}

/// What is 0 outside of the map.
static inline void fill_map(MapValue* to, size_t count) {
  __builtin_memset(to, kByteOffset, count * sizeof(MapValue));
}

static void i8_prepare_input(const ConvShape& s, const float* input, float multiplier, void* scratch,
                             int row_begin, int row_end) {
  const int width = map_columns(s);
  const int left = s.pad_left < width ? s.pad_left : width;
  const int inside = width - left < s.in_w ? width - left : s.in_w;
  const size_t channels = s.in_c;
  for (int y = row_begin; y < row_end; y++) {
    MapValue* row = (MapValue*)scratch + y * width * channels;
    const int in_y = y - s.pad_top;
    if (in_y < 0 || in_y >= s.in_h) {
      fill_map(row, width * channels);
      continue;
    }
    fill_map(row, left * channels);
    quantize_run(input + (size_t)in_y * s.in_w * channels, inside * channels, multiplier,
                 row + left * channels);
    fill_map(row + (left + inside) * channels, (width - left - inside) * channels);
  }
  if (row_end == map_rows(s)) fill_map((MapValue*)scratch + row_end * width * channels, kMapSlack);
}
#endif

/// What the tiles of one slice share.
struct ByteSlice {
  RunGeometry runs;
  int run_count;
  const int8_t* weights;
  const int32_t* starts;
  const float* scales;
  float scale;
};

/// kPixels x (kVectors * kLanes) results, which `finish` takes; if it is null, `values` has kChannelBlock floats a pixel.
template <int kPixels, int kVectors>
PHONEBIT_NOINLINE void multiply_bytes(const ByteSlice& slice, const MapValue* const* pixels, float* values,
                                      [[maybe_unused]] const TileFinish* finish) {
  ByteTileSums<kPixels, kVectors> sums;
  if constexpr (kByteOffset != 0) sums.start(slice.starts);
  const MapValue* from[kPixels];
  unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { from[p] = pixels[p]; });
  const int8_t* weights = slice.weights;
  for (int run = 0; run < slice.run_count; run++) {
    const size_t begin = slice.runs.offset(run), end = begin + slice.runs.run_length;
    weights = sums.add_run(from, begin, end, weights, kVectors * kLanes * kGroupTaps);
  }
  const auto each = [&](const auto& put) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
      const FloatVector scale = load(slice.scales + j * kLanes) * broadcast(slice.scale);
      unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
        put(p, j, __builtin_convertvector(sums.whole(p, j), FloatVector) * scale);
      });
    });
  };
  if constexpr (kFinishesTiles) {
    if (finish) {
      FloatVector results[kPixels][kVectors];
      each([&](auto p, auto j, FloatVector v) PHONEBIT_LAMBDA_INLINE { results[p][j] = v; });
      return finish_tile(*finish, results);
    }
  }
  each([&](auto p, auto j, FloatVector v)
           PHONEBIT_LAMBDA_INLINE { store(values + p * kChannelBlock + j * kLanes, v); });
}

struct ByteTile {
  void (*multiply)(const ByteSlice&, const MapValue* const*, float*, const TileFinish*);
  int pixels;
};

/// The best tile for `left` pixels. One vector leaves registers for twice as many pixels. A tile may be
/// larger than what is left, on x86 by one pixel at most.
template <int kVectors>
static inline ByteTile byte_tile(int left) {
  if constexpr (2 * kVectors <= kByteVectors) {
    if (left >= 2 * kBytePixels) return {multiply_bytes<2 * kBytePixels, kVectors>, 2 * kBytePixels};
  }
  if (left == 1) return {multiply_bytes<1, kVectors>, 1};
  if constexpr (kBytePixels > 4 || kFinishesTiles) {
    if (left < kBytePixels - 1) return {multiply_bytes<2, kVectors>, 2};
  }
  return {multiply_bytes<kBytePixels, kVectors>, kBytePixels};
}

static inline ByteTile byte_tile(int vectors, int left) {
  if constexpr (kByteVectors > 2) {
    if (vectors == 4) return byte_tile<4>(left);
    if (vectors == 3) return byte_tile<3>(left);
  }
  return vectors == 1 ? byte_tile<1>(left) : byte_tile<2>(left);
}

PHONEBIT_RARE static void i8_run(const ConvShape& s, const void* packed, float scale, const void* scratch,
                                 const OutputRange& range, const Epilogue& epilogue) {
  const RunGeometry runs = byte_runs(s);
  const ByteConstants constants(s, packed);
  const int run_count = s.kernel_h * runs.runs_per_row;
  const bool tiles_finish = finishes_tiles(s, epilogue);
  const size_t groups = window_groups(s);
  // The last tile may be larger than what is left: it takes the last pixel again, and nobody its results.
  constexpr int kMostPixels = kMostGroupPixels + kBytePixels - 2;
  alignas(64) float values[kMostPixels * kChannelBlock];
  const MapValue* pixels[kMostPixels];
  for (int block = range.block_begin; block < range.block_end; block++) {
    const int channel0 = block * kChannelBlock;
    const int channels = s.out_c - channel0 < kChannelBlock ? s.out_c - channel0 : kChannelBlock;
    WindowWalk<MapValue> windows(s, (const MapValue*)scratch, (size_t)map_columns(s) * s.in_c, s.in_c,
                                 range.pixel_begin);
    for (int pixel = range.pixel_begin, count; pixel < range.pixel_end; pixel += count) {
      const int left = range.pixel_end - pixel;
      count = left <= kMostGroupPixels ? left : kGroupPixels;
      for (int p = 0; p < count; p++) pixels[p] = windows.next();
      for (int p = count; p < count + kBytePixels - 2; p++) pixels[p] = pixels[count - 1];
      for (int c = 0, vectors; c < channels; c += vectors * kLanes) {
        vectors = byte_slice_vectors(s, channel0 + c);
        const int first = channel0 + c;
        const ByteSlice slice = {runs,
                                 run_count,
                                 constants.weights + first * groups * kGroupTaps,
                                 constants.starts + first,
                                 constants.scales + first,
                                 scale};
        for (int p = 0; p < count;) {
          const ByteTile tile = byte_tile(vectors, count - p);
          const int end = p + tile.pixels < count ? p + tile.pixels : count;
          const TileFinish finish = {&epilogue, first, pixel + p, pixel + end - 1};
          tile.multiply(slice, pixels + p, values + p * kChannelBlock + c, tiles_finish ? &finish : nullptr);
          p += tile.pixels;
        }
      }
      if (!tiles_finish) apply_epilogue(epilogue, values, pixel, count, channel0, channels);
    }
  }
}

constexpr I8ConvKernel kI8Convolution = {
    "conv2d_i8_f32", i8_packed_bytes,  i8_pack_weights, i8_scratch_bytes, i8_largest,
    i8_prepare_rows, i8_prepare_input, kBytePixels,     i8_run,
};
