// The register tile of float32 convolutions. See f32_conv.inl.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "finish_tile.inl"
#include "padded_values.inl"
#include "weight_stream.inl"

// Accumulators and weights leave a register for each pixel's value: gcc loads those early. 24 + 4 of 32 with
// AVX-512 where they can be memory operands; 20 + 4 + 5 of 32; 12 + 2 of 16.
constexpr int kTileVectors = kF32Tile.vectors, kTilePixels = kF32Tile.pixels;
/// Pixels that share a segment's weights. A few more than that stay in one group instead of starting another.
constexpr int kGroupPixels = 8 * kTilePixels, kMaxGroupPixels = 10 * kTilePixels;

/// Runs r in [run_begin, run_end), taps [first, first + length) of each.
struct Segment {
  int run_begin, run_end, first, length;
  const TileFinish* finish;  // null: accumulators go to their buffer
};

static inline size_t window_taps(const ConvShape& s) { return (size_t)s.kernel_h * s.kernel_w * s.in_c; }

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

/// Weights in memory are floats, the bits of halves, or integers.
PHONEBIT_INLINE FloatVector load_floats(const float* from) { return load(from); }
PHONEBIT_INLINE FloatVector load_floats(const uint16_t* from) { return load_halves(from); }
PHONEBIT_INLINE FloatVector load_floats(const int8_t* from) { return load_bytes(from); }

/// Adds one segment to kPixels x (kVectors * kLanes) outputs; `sums` has kChannelBlock floats per pixel.
template <class Weight, int kPixels, int kVectors>
PHONEBIT_INLINE void add_to_tile(const RunGeometry& runs, const Segment& segment, const void* slice,
                                 const float* const* pixels, float* sums, bool from_zero) {
  FloatVector sum[kPixels][kVectors] = {};
  if (!from_zero) {
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
      unroll<kVectors>(
          [&](int j) PHONEBIT_LAMBDA_INLINE { sum[p][j] = load(sums + p * kChannelBlock + j * kLanes); });
    });
  }
  const Weight* weights = (const Weight*)slice;
  const float* from[kPixels];
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { from[p] = pixels[p]; });
  for (int run = segment.run_begin; run < segment.run_end; run++) {
    const size_t begin = runs.offset(run) + segment.first, end = begin + segment.length;
#pragma GCC unroll 2
    for (size_t i = begin; i < end; i++) {
      FloatVector weight[kVectors];
      unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE { weight[j] = load_floats(weights + j * kLanes); });
      if constexpr (kPixels == 1) ask_ahead<kVectors * kLanes * sizeof(Weight)>(weights);
      weights += kVectors * kLanes;
      unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
        const FloatVector x = broadcast(from[p][i]);
        unroll<kVectors>([&](int j)
                             PHONEBIT_LAMBDA_INLINE { sum[p][j] = multiply_add(x, weight[j], sum[p][j]); });
      });
    }
  }
  if constexpr (kFinishesTiles) {
    if (segment.finish) return finish_tile(*segment.finish, sum);
  }
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](int j)
                         PHONEBIT_LAMBDA_INLINE { store(sums + p * kChannelBlock + j * kLanes, sum[p][j]); });
  });
}
