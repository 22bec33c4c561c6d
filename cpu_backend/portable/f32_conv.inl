// Float32 convolution, groups == 1: implicit GEMM on the (padded) NHWC map, no im2col copy.
//
//   out[p][c] = sum over k = (ky, kx, ci) of map[p.y * stride_h + ky * dilation_h][...][ci] * w[c][k]
//
// Lanes are output channels, so that each output is one chain of fused multiply-adds over k in order,
// starting from 0: every ISA, tile and split gives the same bits. A register tile is kTilePixels x
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
// Include inside an anonymous namespace of phonebit::engine::cpu, after portable/intrinsics.h and kernel_types.h.
#pragma once

#include "epilogue.inl"
#include "finish_tile.inl"
#include "half_lanes.inl"
#include "padded_values.inl"
#include "weight_stream.inl"

// Accumulators and weights leave a register for each pixel's value: gcc loads those early. 24 + 4 of 32 with
// AVX-512 where they can be memory operands; 20 + 4 + 5 of 32; 12 + 2 of 16.
#if defined(__AVX512F__)
constexpr int kTileVectors = 4, kTilePixels = 6;
#elif defined(__aarch64__)
constexpr int kTileVectors = 4, kTilePixels = 5;
#else
constexpr int kTileVectors = 2, kTilePixels = 6;
#endif
constexpr int kSliceLanes = kTileVectors * kLanes;
/// A layer of one pixel has no other chains than its vectors: slices of eight hide the latency of an FMA.
constexpr int kOnePixelVectors = kChannelBlock / kLanes < 8 ? kChannelBlock / kLanes : 8;
/// 16 kB of weights. With AVX-512 64 kB or, of halves, 32 kB: they arrive from the second cache in time.
constexpr int kSegmentTaps = 256;
/// Whether a segment of halves or bytes is converted once for all tiles of a pixel group, or by each tile in
/// registers. The latter is hidden behind the multiply-adds of x86 (the former costs 4 % of Zen 4's time),
/// but waits for their pipes on Arm, where it would also take a copy of each tile in a small library.
#if defined(__x86_64__) || defined(__i386__)
constexpr bool kWidensSegments = false;
#else
constexpr bool kWidensSegments = true;
#endif
/// Pixels that share a segment's weights. A few more than that stay in one group instead of starting another.
constexpr int kGroupPixels = 8 * kTilePixels, kMostGroupPixels = 10 * kTilePixels;

/// Runs r in [run_begin, run_end), taps [first, first + length) of each.
struct Segment {
  int run_begin, run_end, first, length;
  const TileFinish* finish;  // null: accumulators go to their buffer
};

/// How the window falls into runs.
struct RunGeometry {
  int runs_per_row, run_length;
  size_t row_step, column_step;  // floats from one kernel row, or column, to the next

  size_t offset(int run) const {
    if (runs_per_row == 1) return run * row_step;
    return run / runs_per_row * row_step + run % runs_per_row * column_step;
  }
};

static inline RunGeometry run_geometry(const ConvShape& s, const ValueMap<float>& map) {
  const bool whole_rows = s.dilation_w == 1;
  return {whole_rows ? 1 : s.kernel_w, whole_rows ? s.kernel_w * s.in_c : s.in_c,
          s.dilation_h * map.row_stride, s.dilation_w * map.pixel_stride};
}

/// Adds one segment to kPixels x (kVectors * kLanes) outputs; `sums` has kChannelBlock floats a pixel.
template <class Weight, int kPixels, int kVectors>
PHONEBIT_INLINE void add_to_tile(const RunGeometry& runs, const Segment& segment, const void* slice,
                                 const float* const* pixels, float* sums, bool from_zero) {
  FloatVector sum[kPixels][kVectors] = {};
  if (!from_zero) {
    unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
      unroll<kVectors>(
          [&](auto j) PHONEBIT_LAMBDA_INLINE { sum[p][j] = load(sums + p * kChannelBlock + j * kLanes); });
    });
  }
  const Weight* weights = (const Weight*)slice;
  const float* from[kPixels];
  unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { from[p] = pixels[p]; });
  for (int run = segment.run_begin; run < segment.run_end; run++) {
    const size_t begin = runs.offset(run) + segment.first, end = begin + segment.length;
#pragma GCC unroll 2
    for (size_t i = begin; i < end; i++) {
      FloatVector weight[kVectors];
      unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE { weight[j] = load_floats(weights + j * kLanes); });
      if constexpr (kPixels == 1) ask_ahead<kVectors * kLanes * sizeof(Weight)>(weights);
      weights += kVectors * kLanes;
      unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
        const FloatVector x = broadcast(from[p][i]);
        unroll<kVectors>(
            [&](auto j) PHONEBIT_LAMBDA_INLINE { sum[p][j] = fused_multiply_add(x, weight[j], sum[p][j]); });
      });
    }
  }
  if constexpr (kFinishesTiles) {
    if (segment.finish) return finish_tile(*segment.finish, sum);
  }
  unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](auto j)
                         PHONEBIT_LAMBDA_INLINE { store(sums + p * kChannelBlock + j * kLanes, sum[p][j]); });
  });
}

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

#if defined(__aarch64__)
/// The full tile, four taps at a time, in an order that suits in-order cores: loads well before the multiply-adds, none
/// of which waits for another. Addresses without an index register leave Kryo's multiply pipes alone.
template <>
PHONEBIT_INLINE void add_to_tile<float, 5, 4>(const RunGeometry& runs, const Segment& segment,
                                              const void* weights, const float* const* pixels, float* sums,
                                              bool from_zero) {
  // Runs at equal distances: all, or those of a row.
  const bool is_even = runs.runs_per_row == 1;
  const size_t step = sizeof(float) * (is_even ? runs.row_step : runs.column_step);
  for (int run = segment.run_begin, end; run < segment.run_end; run = end) {
    end = is_even ? segment.run_end : run - run % runs.runs_per_row + runs.runs_per_row;
    if (end > segment.run_end) end = segment.run_end;
    size_t offset = sizeof(float) * (runs.offset(run) + segment.first), at;
    int count = end - run, left;
    const float *p0, *p1, *p2, *p3, *p4;
    // clang-format off
// v0-19 sums, pixel by pixel; v20-23, v29 and v30 weights; v24-28 one or four values of each pixel.
#define ZERO(V) "movi v" #V ".4s, #0\n"
#define SUMS(OP, P, A, B, C, D)                                                                            \
  "add %[at], %[sums], #256*" #P "\n"                                                                     \
  #OP " q" #A ", q" #B ", [%[at]]\n"                                                                      \
  #OP " q" #C ", q" #D ", [%[at], #32]\n"
#define ALL_SUMS(OP)                                                                                       \
  SUMS(OP, 0, 0, 1, 2, 3) SUMS(OP, 1, 4, 5, 6, 7) SUMS(OP, 2, 8, 9, 10, 11) SUMS(OP, 3, 12, 13, 14, 15)    \
  SUMS(OP, 4, 16, 17, 18, 19)
#define WEIGHT(V, AT) "ldr q" #V ", [%[weights], #" #AT "]\n"
#define PIXEL(P) "ldr %[p" #P "], [%[pixels], #8*" #P "]\n" "add %[p" #P "], %[p" #P "], %[offset]\n"
#define VALUE(SIZE, V, P) "ldr " #SIZE #V ", [%[p" #P "]]\n"
#define VALUES(SIZE) VALUE(SIZE, 24, 0) VALUE(SIZE, 25, 1) VALUE(SIZE, 26, 2) VALUE(SIZE, 27, 3) VALUE(SIZE, 28, 4)
#define NEXT(P, BYTES) "add %[p" #P "], %[p" #P "], #" #BYTES "\n"
#define ALL_NEXT(BYTES) NEXT(0, BYTES) NEXT(1, BYTES) NEXT(2, BYTES) NEXT(3, BYTES) NEXT(4, BYTES)
#define ADD(V, W, X, I) "fmla v" #V ".4s, v" #W ".4s, v" #X ".s[" #I "]\n"
#define ADDS(A, B, C, D, E, W, I) ADD(A, W, 24, I) ADD(B, W, 25, I) ADD(C, W, 26, I) ADD(D, W, 27, I) ADD(E, W, 28, I)
#define ADDS0(W, I) ADDS(0, 4, 8, 12, 16, W, I)
#define ADDS1(W, I) ADDS(1, 5, 9, 13, 17, W, I)
#define ADDS2(W, I) ADDS(2, 6, 10, 14, 18, W, I)
#define ADDS3(W, I) ADDS(3, 7, 11, 15, 19, W, I)
    asm volatile(
        "cbnz %w[zero], 1f\n"
        ALL_SUMS(ldp)
        "b 2f\n"
        "1:\n"
        ZERO(0) ZERO(1) ZERO(2) ZERO(3) ZERO(4) ZERO(5) ZERO(6) ZERO(7) ZERO(8) ZERO(9)
        ZERO(10) ZERO(11) ZERO(12) ZERO(13) ZERO(14) ZERO(15) ZERO(16) ZERO(17) ZERO(18) ZERO(19)
        "2:\n"
        PIXEL(0) PIXEL(1) PIXEL(2) PIXEL(3) PIXEL(4)
        "subs %w[left], %w[length], #4\n"
        "b.lt 4f\n"
        "3:\n"
        WEIGHT(20, 0) WEIGHT(21, 16) WEIGHT(22, 32) WEIGHT(23, 48) WEIGHT(29, 64) WEIGHT(30, 80)
        VALUES(q) ALL_NEXT(16)
        "add %[weights], %[weights], #256\n"
        "subs %w[left], %w[left], #4\n"
        ADDS0(20, 0) ADDS1(21, 0) ADDS2(22, 0) ADDS3(23, 0) ADDS0(29, 1) ADDS1(30, 1)
        WEIGHT(20, -160) WEIGHT(21, -144) WEIGHT(22, -128) WEIGHT(23, -112) WEIGHT(29, -96)
        ADDS2(20, 1) ADDS3(21, 1) ADDS0(22, 2) ADDS1(23, 2) ADDS2(29, 2)
        WEIGHT(20, -80) WEIGHT(21, -64) WEIGHT(22, -48) WEIGHT(23, -32) WEIGHT(29, -16)
        ADDS3(20, 2) ADDS0(21, 3) ADDS1(22, 3) ADDS2(23, 3) ADDS3(29, 3)
        "b.ge 3b\n"
        "4:\n"
        "adds %w[left], %w[left], #4\n"
        "b.eq 6f\n"
        "5:\n"
        WEIGHT(20, 0) WEIGHT(21, 16) WEIGHT(22, 32) WEIGHT(23, 48) VALUES(s) ALL_NEXT(4)
        "add %[weights], %[weights], #64\n"
        "subs %w[left], %w[left], #1\n"
        ADDS0(20, 0) ADDS1(21, 0) ADDS2(22, 0) ADDS3(23, 0)
        "b.ne 5b\n"
        "6:\n"
        "subs %w[count], %w[count], #1\n"
        "add %[offset], %[offset], %[step]\n"
        "b.ne 2b\n"
        ALL_SUMS(stp)
        : [weights] "+&r"(weights), [offset] "+&r"(offset), [count] "+&r"(count), [left] "=&r"(left),
          [at] "=&r"(at), [p0] "=&r"(p0), [p1] "=&r"(p1), [p2] "=&r"(p2), [p3] "=&r"(p3), [p4] "=&r"(p4)
        : [sums] "r"(sums), [pixels] "r"(pixels), [step] "r"(step), [length] "r"(segment.length),
          [zero] "r"((int)from_zero)
        : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12",
          "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26",
          "v27", "v28", "v29", "v30");
#undef ZERO
#undef SUMS
#undef ALL_SUMS
#undef WEIGHT
#undef PIXEL
#undef VALUE
#undef VALUES
#undef NEXT
#undef ALL_NEXT
#undef ADD
#undef ADDS
#undef ADDS0
#undef ADDS1
#undef ADDS2
#undef ADDS3
    // clang-format on
    from_zero = false;
  }
}
#endif

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

static inline size_t window_taps(const ConvShape& s) { return (size_t)s.kernel_h * s.kernel_w * s.in_c; }

template <class Weight>
static size_t real_packed_bytes(const ConvShape& s) {
  const size_t channels = (s.out_c + kLanes - 1) / kLanes * kLanes;
  return window_taps(s) * channels * sizeof(Weight);
}

template <class Weight>
PHONEBIT_RARE static void real_pack_weights(const ConvShape& s, const Weight* weights, void* packed) {
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
  alignas(64) float sums[kMostGroupPixels * kChannelBlock];
  const float* pixels[kMostGroupPixels + 1];
  const bool tiles_finish = finishes_tiles(s, epilogue);
  for (int block = range.block_begin; block < range.block_end; block++) {
    const int channel0 = block * kChannelBlock;
    const int channels = s.out_c - channel0 < kChannelBlock ? s.out_c - channel0 : kChannelBlock;
    WindowWalk<float> windows(s, map.pixels, map.row_stride, map.pixel_stride, range.pixel_begin);
    for (int pixel = range.pixel_begin, count; pixel < range.pixel_end; pixel += count) {
      const int left = range.pixel_end - pixel;
      count = left <= kMostGroupPixels ? left : kGroupPixels;
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
static void real_run(const ConvShape& s, const void* packed, const float* input, const void* scratch,
                     const OutputRange& range, const Epilogue& epilogue) {
  convolve_range(kWeightType<Weight>, s, packed, input, scratch, range, epilogue);
}

template <class Weight>
constexpr RealConvKernel<Weight> real_convolution(const char* name) {
  return {name,
          real_packed_bytes<Weight>,
          real_pack_weights<Weight>,
          value_padded_bytes<float>,
          value_padded_rows,
          pad_values<float>,
          kTilePixels,
          real_run<Weight>};
}

constexpr F32ConvKernel kF32Convolution = real_convolution<float>("conv2d_f32_f32");
constexpr F16ConvKernel kF16Convolution = real_convolution<uint16_t>("conv2d_f32_f32_w16");
constexpr W8ConvKernel kW8Convolution = real_convolution<int8_t>("conv2d_f32_f32_w8");
