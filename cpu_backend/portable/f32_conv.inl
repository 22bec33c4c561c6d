// Float32 convolution, groups == 1: implicit GEMM on the (padded) NHWC map, no im2col copy.
//
//   out[p][c] = sum over k = (ky, kx, ci) of map[p.y * stride_h + ky * dilation_h][...][ci] * w[c][k]
//
// Lanes are output channels, so that each output is one chain of fused multiply-adds over k in order,
// starting from 0: every ISA, tile and split computes the same bits. A register tile is kTilePixels x
// kTileVectors vectors. What lies contiguously in the map (a row of taps, or a single tap when dilation_w >
// 1) is a "run"; a segment is as many runs, or as much of one run, as keeps its weights in a near cache while
// all tiles of a pixel group use them. Between segments accumulators wait in a small buffer, which changes no
// bit of the chain.
//
// Weights: slices of kSliceLanes output channels, each [k][lanes of the slice]; the last slice is only as
// many vectors wide as it needs. Layers of one pixel have wider slices.
//
// Weights may be halves or bytes, of which a layer that waits for its weights waits for fewer. The
// conversion is exact, wherever it happens, and what follows is the same.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "f32_tile.inl"

constexpr int kSliceLanes = kTileVectors * kLanes;
/// A layer of one pixel has no other chains than its vectors: slices of eight hide the latency of an FMA.
constexpr int kOnePixelVectors = kChannelBlock / kLanes < 8 ? kChannelBlock / kLanes : 8;
/// 16 kB of weights. With AVX-512 64 kB or, of halves, 32 kB: they arrive from the second cache in time.
constexpr int kSegmentTaps = 256;
/// Whether a segment of halves or bytes is converted once for all tiles of a pixel group, or by each tile in
/// registers. The latter overlaps with the multiply-adds of x86 (the former costs 4 % of Zen 4's time),
/// but waits for their pipes on Arm, where it would also need a copy of each tile in a small library.
constexpr bool kWidensSegments = kSmallCode;

/// The same for some tiles, one after the other; for one if it is of a pixel, or on x86, where tiles that finish
/// themselves come one by one.
template <class Weight, int kPixels, int kVectors>
PHONEBIT_NOINLINE void add_segment(const RunGeometry& runs, const Segment& segment, const void* slice,
                                   const float* const* pixels, float* sums, bool from_zero,
                                   [[maybe_unused]] int tiles) {
  do {
    add_to_tile<Weight, kPixels, kVectors>(runs, segment, slice, pixels, sums, from_zero);
    pixels += kPixels, sums += kPixels * kChannelBlock;
  } while (kPixels > 1 && !kFinishesTiles && --tiles > 0);
}

using AddSegment = void (*)(const RunGeometry&, const Segment&, const void*, const float* const*, float*,
                            bool, int);

struct TileKernel {
  AddSegment add;
  int pixels;
};

template <class Weight>
static AddSegment one_pixel_kernel(int vectors) {
  if (vectors == kOnePixelVectors) return add_segment<Weight, 1, kOnePixelVectors>;
  if constexpr (kTileVectors > 2) {
    if (vectors == 3) return add_segment<Weight, 1, 3>;
    if (vectors == 4) return add_segment<Weight, 1, 4>;
  }
  return vectors == 1 ? add_segment<Weight, 1, 1> : add_segment<Weight, 1, 2>;
}

/// The best tile for `left` > 1 pixels. Narrow slices leave registers for twice as many, which hides the
/// latency of their chains. A tile may be one pixel larger than what is left.
template <class Weight, int kVectors>
static inline TileKernel tile_kernel(int left) {
  if constexpr (2 * kVectors <= kTileVectors && kTileVectors > 2) {
    if (left >= 2 * kTilePixels) return {add_segment<Weight, 2 * kTilePixels, kVectors>, 2 * kTilePixels};
  }
  if (left >= kTilePixels - 1) return {add_segment<Weight, kTilePixels, kVectors>, kTilePixels};
  if constexpr (kTilePixels > 5) {
    if (left == 4) return {add_segment<Weight, 4, kVectors>, 4};
  }
  return {add_segment<Weight, 2, kVectors>, 2};
}

template <class Weight>
static TileKernel tile_kernel(int vectors, int left) {
  if (left == 1) return {one_pixel_kernel<Weight>(vectors), 1};
  if constexpr (kTileVectors > 2) {
    if (vectors == 3) return tile_kernel<Weight, 3>(left);
    if (vectors == 4) return tile_kernel<Weight, 4>(left);
  }
  return vectors == 1 ? tile_kernel<Weight, 1>(left) : tile_kernel<Weight, 2>(left);
}

/// `count` numbers, whole vectors, as floats.
template <class Weight>
static void widen_weights(const void* from, size_t count, float* to) {
  for (size_t i = 0; i < count; i += kLanes) store(to + i, load_floats((const Weight*)from + i));
}

/// What differs between types of weights, for a layer's loops. A single pixel's kernel reads them as they
/// are; tiles read what `widen` makes of a segment, or them, too, where it is null.
struct WeightType {
  size_t bytes;
  AddSegment (*one_pixel_kernel)(int vectors);
  TileKernel (*tile_kernel)(int vectors, int left);
  void (*widen)(const void* from, size_t count, float* to);
};

template <class Weight>
constexpr WeightType kWeightType =
    kWidensSegments ? WeightType{sizeof(Weight), one_pixel_kernel<Weight>, tile_kernel<float>,
                                 sizeof(Weight) < sizeof(float) ? widen_weights<Weight> : nullptr}
                    : WeightType{sizeof(Weight), one_pixel_kernel<Weight>, tile_kernel<Weight>, nullptr};

/// Width of the slice that starts at `channel`; slices do not cross blocks.
static inline int vectors_of_slice(const ConvShape& s, int channel) {
  const int left = (s.out_c - channel + kLanes - 1) / kLanes;
  if (s.out_h * s.out_w == 1 && left >= kOnePixelVectors) return kOnePixelVectors;
  return left < kTileVectors ? left : kTileVectors;
}

template <class Weight>
static size_t float_packed_bytes(const ConvShape& s) {
  const size_t channels = (s.out_c + kLanes - 1) / kLanes * kLanes;
  return window_taps(s) * channels * sizeof(Weight);
}

template <class Weight>
PHONEBIT_RARE static void float_pack_weights(const ConvShape& s, const Weight* weights, void* packed) {
  const size_t taps = window_taps(s);
  for (int channel = 0, lanes; channel < s.out_c; channel += lanes) {
    lanes = vectors_of_slice(s, channel) * kLanes;
    Weight* slice = (Weight*)packed + channel * taps;
    for (int lane = 0; lane < lanes; lane++) {
      const Weight* from = weights + (channel + lane) * taps;
      const bool used = channel + lane < s.out_c;
      for (size_t k = 0; k < taps; k++) slice[k * lanes + lane] = used ? from[k] : Weight{};
    }
  }
}

/// One slice of output channels for a group of pixels, segment by segment.
PHONEBIT_RARE static void convolve_slice(const WeightType& type, const RunGeometry& runs, int run_count,
                                         int vectors, const char* weights, const float* const* pixels,
                                         int count, float* sums, TileFinish* finish) {
  // Short runs are grouped, long ones are cut: a segment never exceeds kSegmentTaps.
  const int runs_each = runs.run_length < kSegmentTaps ? kSegmentTaps / runs.run_length : 1;
  const int length = runs.run_length < kSegmentTaps ? runs.run_length : kSegmentTaps;
  alignas(64) float widened[kWidensSegments ? kSegmentTaps * kSliceLanes : 1];
  bool from_zero = true;
  [[maybe_unused]] const int64_t pixel = finish ? finish->first : 0;
  for (int run = 0; run < run_count; run += runs_each) {
    const int run_end = run + runs_each < run_count ? run + runs_each : run_count;
    for (int first = 0; first < runs.run_length; first += length) {
      const int left = runs.run_length - first;
      const bool is_last = run_end == run_count && left <= length;
      const Segment segment = {run, run_end, first, left < length ? left : length,
                               is_last ? finish : nullptr};
      const size_t size = (size_t)(run_end - run) * segment.length * vectors * kLanes;
      const void* slice = weights;
      if (type.widen && count > 1) {
        type.widen(weights, size, widened);
        slice = widened;
      }
      for (int p = 0; p < count;) {
        const TileKernel tile =
            count > 1 ? type.tile_kernel(vectors, count - p) : TileKernel{type.one_pixel_kernel(vectors), 1};
        if constexpr (kFinishesTiles) {
          if (segment.finish) {
            finish->first = pixel + p;
            finish->last = pixel + (p + tile.pixels < count ? p + tile.pixels : count) - 1;
          }
        }
        const int tiles = kFinishesTiles || count - p < tile.pixels ? 1 : (count - p) / tile.pixels;
        tile.add(runs, segment, slice, pixels + p, sums + p * kChannelBlock, from_zero, tiles);
        p += tiles * tile.pixels;
      }
      weights += size * type.bytes;
      from_zero = false;
    }
  }
}

PHONEBIT_RARE static void convolve_range(const WeightType& type, const ConvShape& s, const void* packed,
                                         const float* input, const void* scratch, const OutputRange& range,
                                         const Epilogue& epilogue) {
  const ValueMap<float> map = value_map(s, input, scratch);
  const RunGeometry runs = run_geometry(s, map);
  const int run_count = s.kernel_h * runs.runs_per_row;
  alignas(64) float sums[kMaxGroupPixels * kChannelBlock];
  const float* pixels[kMaxGroupPixels + 1];
  const bool tiles_finish = finishes_tiles(s, epilogue);
  for (int block = range.block_begin; block < range.block_end; block++) {
    const int channel0 = block * kChannelBlock;
    const int channels = s.out_c - channel0 < kChannelBlock ? s.out_c - channel0 : kChannelBlock;
    WindowWalk<float> windows(s, map.pixels, map.row_stride, map.pixel_stride, range.pixel_begin);
    for (int pixel = range.pixel_begin, count; pixel < range.pixel_end; pixel += count) {
      const int left = range.pixel_end - pixel;
      count = left <= kMaxGroupPixels ? left : kGroupPixels;
      for (int p = 0; p < count; p++) pixels[p] = windows.next();
      pixels[count] = pixels[count - 1];  // for a tile larger than what is left; its sums are not used
      for (int c = 0, vectors; c < channels; c += vectors * kLanes) {
        vectors = vectors_of_slice(s, channel0 + c);
        const char* weights = (const char*)packed + (channel0 + c) * window_taps(s) * type.bytes;
        TileFinish finish = {&epilogue, channel0 + c, pixel, pixel};
        convolve_slice(type, runs, run_count, vectors, weights, pixels, count, sums + c,
                       tiles_finish ? &finish : nullptr);
      }
      if (!tiles_finish) apply_epilogue(epilogue, sums, pixel, count, channel0, channels);
    }
  }
}

template <class Weight>
static void float_run(const ConvShape& s, const void* packed, const float* input, const void* scratch,
                      const OutputRange& range, const Epilogue& epilogue) {
  convolve_range(kWeightType<Weight>, s, packed, input, scratch, range, epilogue);
}

template <class Weight>
constexpr FloatConvKernel<Weight> float_convolution(const char* name) {
  return {name,
          float_packed_bytes<Weight>,
          float_pack_weights<Weight>,
          value_padded_bytes<float>,
          value_padded_rows,
          pad_values<float>,
          kTilePixels,
          float_run<Weight>};
}

constexpr F32ConvKernel kF32Convolution = float_convolution<float>("conv2d_f32_f32");
constexpr F16ConvKernel kF16Convolution = float_convolution<uint16_t>("conv2d_f32_f32_w16");
constexpr W8ConvKernel kW8Convolution = float_convolution<int8_t>("conv2d_f32_f32_w8");
