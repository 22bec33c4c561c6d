// Convolution in 8-bit integers, groups == 1: inputs become integers from -127 to 127, weights are such.
//
//   q(x) = nearest integer of x * multiplier, limited to +-127
//   v[p][c] = (float)(sum over k of q(x[p][k]) w[c][k]) * (scale * scales[c])
//
// The sum is exact, so every ISA, tile and split computes the same bits. Where inputs are integers already, the
// multiplier and all scales are 1 and sums stay below 2^24, v is what a chain of float32 multiply-adds computes:
// each of its steps is exact.
//
// Inputs are quantized into a map of MapValue with zeros around it. What lies contiguously there is a run, as
// in f32_conv.inl; a run is read in groups of kGroupTaps taps, the last of which may reach into its neighbour:
// its weights there are 0. Weights: slices of at most kByteVectors vectors of output channels, each
// [run][group][channel][kGroupTaps].
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after i8_packing.inl, or i8_dots.inl and
// neon/shared_bytes.inl.
#pragma once

#include "i8_layout.inl"

static void i8_pack_weights(const ConvShape& s, const int8_t* weights, const float* scales, void* packed) {
  pack_bytes(s, weights, scales, packed, kGroupTaps, kByteVectors);
}

static size_t i8_scratch_bytes(const ConvShape& s) {
  return ((size_t)map_rows(s) * map_columns(s) * s.in_c + kMapSlack) * sizeof(MapValue);
}

static int i8_prepare_rows(const ConvShape& s) { return map_rows(s); }

/// What the tiles of one slice share.
struct ByteSlice {
  RunGeometry runs;
  int run_count;
  const int8_t* weights;
  const int32_t* starts;
  const float* scales;
  float scale;
};

/// kPixels x (kVectors * kLanes) results, which `finish` accepts; if it is null, `values` has kChannelBlock floats per
/// pixel.
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
  // The last tile may be larger than what is left: it computes the last pixel again, and nobody reads those results.
  constexpr int kMaxPixels = kMaxGroupPixels + kBytePixels - 2;
  alignas(64) float values[kMaxPixels * kChannelBlock];
  const MapValue* pixels[kMaxPixels];
  for (int block = range.block_begin; block < range.block_end; block++) {
    const int channel0 = block * kChannelBlock;
    const int channels = s.out_c - channel0 < kChannelBlock ? s.out_c - channel0 : kChannelBlock;
    WindowWalk<MapValue> windows(s, (const MapValue*)scratch, (size_t)map_columns(s) * s.in_c, s.in_c,
                                 range.pixel_begin);
    for (int pixel = range.pixel_begin, count; pixel < range.pixel_end; pixel += count) {
      const int left = range.pixel_end - pixel;
      count = left <= kMaxGroupPixels ? left : kGroupPixels;
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
