// Float32 kernels that reduce a window of each channel by itself: depthwise convolution, max pool, average
// pool. One walk over the windows; an Op says what happens at each tap.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after portable/intrinsics.h and kernel_types.h.
#pragma once

#include "epilogue.inl"
#include "pieces.inl"
#include "whole_columns.inl"

/// Pixels whose results are collected before the epilogue runs over them.
constexpr int kWindowPixels = 16;
/// Vectors of channels reduced at once for one pixel; half of 16 registers, so that loads and constants have
/// the others.
constexpr int kWindowVectors = kChannelBlock / kLanes < 8 ? kChannelBlock / kLanes : 8;
/// Neighbours inside a row that are reduced together, and the vectors of each.
constexpr int kSharedPixels = 4;
#if defined(__AVX512F__)
constexpr int kSharedVectors = 4;
#else
constexpr int kSharedVectors = 2;
#endif

/// A window of more taps is reduced in pieces.
constexpr int kPieceTaps = kPiece / kChannelBlock;

/// The taps of one output pixel that lie inside the map, or a piece of them.
struct Window {
  const float* first_tap;     // at (rows.begin, columns.begin)
  size_t row_step, tap_step;  // floats from one tap to the next
  TapSpan rows, columns;
  bool is_begun = false;    // `out` holds what the pieces before have given
  bool is_finished = true;  // by this piece
  int taps = 0;             // of the whole window
};

/// Where results go, the first channel of the block first: a tile that waits for the epilogue, or the output.
struct Results {
  float* values;
  size_t pixel_step;

  Results from(int pixel, int channel) const { return {values + pixel * pixel_step + channel, pixel_step}; }
};

/// sum of taps times weights, a chain of fused multiply-adds from 0. weights [kernel_h][kernel_w][channels].
struct DepthwiseOp {
  const float* weights;
  int kernel_w, channels;
  static FloatVector start() { return FloatVector{}; }
  const float* operand(int ky, int kx) const { return weights + ((size_t)ky * kernel_w + kx) * channels; }
  static FloatVector step(FloatVector sum, FloatVector x, FloatVector weight) {
    return fused_multiply_add(x, weight, sum);
  }
  static FloatVector finish(FloatVector sum, int) { return sum; }
};

struct MaximumOp {
  static FloatVector start() { return broadcast(-__builtin_inff()); }
  static constexpr const float* operand(int, int) { return nullptr; }
  static FloatVector step(FloatVector most, FloatVector x, FloatVector) { return maximum(x, most); }
  static FloatVector finish(FloatVector most, int) { return most; }
};

struct AverageOp {
  static FloatVector start() { return FloatVector{}; }
  static constexpr const float* operand(int, int) { return nullptr; }
  static FloatVector step(FloatVector sum, FloatVector x, FloatVector) { return sum + x; }
  static FloatVector finish(FloatVector sum, int taps) { return sum / broadcast((float)taps); }
};

/// Reduces kVectors vectors of channels from `channel` on for kPixels pixels whose windows cover the same
/// taps and start pixel_step floats apart. kPartial: one vector with `valid` channels.
template <int kPixels, int kVectors, bool kPartial, class Op>
PHONEBIT_INLINE void reduce_window(const Op& op, const Window& window, size_t pixel_step, int channel,
                                   [[maybe_unused]] int valid, const Results& out) {
  const auto fetch = [&](const float* from) PHONEBIT_LAMBDA_INLINE {
    if constexpr (kPartial) {
      return load_partial(from, valid);
    } else {
      return load(from);
    }
  };
  FloatVector result[kPixels][kVectors];
  const auto each = [&](const auto& body) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
      unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { body(p, j); });
    });
  };
  if (window.is_begun) {
    each([&](auto p, auto j)
             PHONEBIT_LAMBDA_INLINE { result[p][j] = load(out.values + p * out.pixel_step + j * kLanes); });
  } else {
    each([&](auto p, auto j) PHONEBIT_LAMBDA_INLINE { result[p][j] = Op::start(); });
  }
  const float* row = window.first_tap + channel;
  for (int ky = window.rows.begin; ky < window.rows.end; ky++, row += window.row_step) {
    const float* tap = row;
    for (int kx = window.columns.begin; kx < window.columns.end; kx++, tap += window.tap_step) {
      const float* operand = op.operand(ky, kx);
      unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
        const FloatVector weight = operand ? fetch(operand + channel + j * kLanes) : FloatVector{};
        unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
          result[p][j] = Op::step(result[p][j], fetch(tap + p * pixel_step + j * kLanes), weight);
        });
      });
    }
  }
  if (window.is_finished)
    each([&](auto p, auto j)
             PHONEBIT_LAMBDA_INLINE { result[p][j] = Op::finish(result[p][j], window.taps); });
  each([&](auto p, auto j)
           PHONEBIT_LAMBDA_INLINE { store(out.values + p * out.pixel_step + j * kLanes, result[p][j]); });
}

/// kPixels pixels, `channels` <= kChannelBlock channels.
template <int kPixels, class Op>
PHONEBIT_NOINLINE void reduce_block(const Op& op, const Window& window, size_t pixel_step, int channel0,
                                    int channels, const Results& out) {
  constexpr int kVectors = kPixels == 1 ? kWindowVectors : kSharedVectors;
  int c = 0;
  for (; c + kVectors * kLanes <= channels; c += kVectors * kLanes)
    reduce_window<kPixels, kVectors, false>(op, window, pixel_step, channel0 + c, kLanes, out.from(0, c));
  for (; c + kLanes <= channels; c += kLanes)
    reduce_window<kPixels, 1, false>(op, window, pixel_step, channel0 + c, kLanes, out.from(0, c));
  if (c < channels)
    reduce_window<kPixels, 1, true>(op, window, pixel_step, channel0 + c, channels - c, out.from(0, c));
}

/// One pixel whose window is large: some rows at a time, or a run of one row. False if it was stopped.
template <class Op>
static __attribute__((noinline)) bool reduce_in_pieces(const Op& op, const Window& whole, int channel0,
                                                       int channels, const Stop& stop, const Results& out) {
  const TapSpan rows = whole.rows, columns = whole.columns;
  const int width = columns.end - columns.begin;
  const int piece_rows = width < kPieceTaps ? kPieceTaps / width : 1;
  Window piece = whole;
  for (int y = rows.begin; y < rows.end; y += piece_rows) {
    piece.rows = {y, rows.end - y < piece_rows ? rows.end : y + piece_rows};
    for (int x = columns.begin; x < columns.end; x += kPieceTaps) {
      piece.columns = {x, columns.end - x < kPieceTaps ? columns.end : x + kPieceTaps};
      piece.first_tap =
          whole.first_tap + (y - rows.begin) * whole.row_step + (x - columns.begin) * whole.tap_step;
      piece.is_finished = piece.rows.end == rows.end && piece.columns.end == columns.end;
      reduce_block<1>(op, piece, 0, channel0, channels, out);
      piece.is_begun = true;
      if (stop()) return false;
    }
  }
  return true;
}

template <class Op>
static inline void reduce_rows(const Op& op, const ConvShape& s, const float* input, int row_begin,
                               int row_end, const Epilogue& epilogue, const Stop& stop) {
  const size_t channels = s.in_c, pixel_step = s.stride_w * channels;
  const TapSpan whole = whole_columns(s);
  const bool has_epilogue =
      epilogue.step_count > 0 || epilogue.bits || !epilogue.value || s.out_c % kLanes != 0;
  alignas(64) float tile[kWindowPixels * kChannelBlock];
  Window window = {};
  Pieces pieces(stop);
  window.row_step = (size_t)s.dilation_h * s.in_w * channels;
  window.tap_step = s.dilation_w * channels;
  for (int y = row_begin; y < row_end; y++) {
    window.rows = row_span(s, y);
    const int in_y = y * s.stride_h - s.pad_top + window.rows.begin * s.dilation_h;
    const float* row = input + (int64_t)in_y * s.in_w * (int64_t)channels;
    for (int x0 = 0; x0 < s.out_w; x0 += kWindowPixels) {
      const int count = s.out_w - x0 < kWindowPixels ? s.out_w - x0 : kWindowPixels;
      for (int channel0 = 0; channel0 < s.out_c; channel0 += kChannelBlock) {
        const int block = s.out_c - channel0 < kChannelBlock ? s.out_c - channel0 : kChannelBlock;
        const int first = y * s.out_w + x0;
        const Results results =
            has_epilogue ? Results{tile, kChannelBlock}
                         : Results{epilogue.value + (int64_t)first * epilogue.pixel_channels + channel0,
                                   (size_t)epilogue.pixel_channels};
        for (int p = 0; p < count;) {
          const int x = x0 + p;
          const bool several =
              x >= whole.begin && x + kSharedPixels <= whole.end && p + kSharedPixels <= count;
          window.columns = several ? TapSpan{0, s.kernel_w} : column_span(s, x);
          const int in_x = x * s.stride_w - s.pad_left + window.columns.begin * s.dilation_w;
          window.first_tap = row + in_x * (int64_t)channels;
          window.taps = (window.rows.end - window.rows.begin) * (window.columns.end - window.columns.begin);
          const Results out = results.from(p, 0);
          if (window.taps > kPieceTaps) {
            if (!reduce_in_pieces(op, window, channel0, block, stop, out)) return;
            p++;
            continue;
          }
          if (several) {
            reduce_block<kSharedPixels>(op, window, pixel_step, channel0, block, out);
          } else {
            reduce_block<1>(op, window, pixel_step, channel0, block, out);
          }
          p += several ? kSharedPixels : 1;
        }
        if (has_epilogue) apply_epilogue(epilogue, tile, first, count, channel0, block);
        if (pieces.is_end_after((int64_t)s.kernel_h * s.kernel_w * count * block)) return;
      }
    }
  }
}

static void depthwise_f32(const ConvShape& s, const float* weights, const float* input, int row_begin,
                          int row_end, const Epilogue& epilogue, const Stop& stop) {
  reduce_rows(DepthwiseOp{weights, s.kernel_w, s.in_c}, s, input, row_begin, row_end, epilogue, stop);
}

static void max_pool_f32(const ConvShape& s, const float* input, int row_begin, int row_end,
                         const Epilogue& epilogue, const Stop& stop) {
  reduce_rows(MaximumOp{}, s, input, row_begin, row_end, epilogue, stop);
}

static void average_pool_f32(const ConvShape& s, const float* input, int row_begin, int row_end,
                             const Epilogue& epilogue, const Stop& stop) {
  reduce_rows(AverageOp{}, s, input, row_begin, row_end, epilogue, stop);
}
