// Float32 kernels that reduce a window of each channel by itself: depthwise convolution, max pool, average
// pool. One walk over the windows; an Op says what happens at each tap.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
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
constexpr int kSharedVectors = kLanes < 16 ? 2 : 4;

/// The taps of one output pixel that lie inside the map, or a piece of them.
struct Window {
  const float* first_tap;     // at (rows.begin, columns.begin)
  size_t row_step, tap_step;  // floats from one tap to the next
  TapSpan rows, columns;
  bool is_begun = false;    // `out` holds the results of the pieces before
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
    return multiply_add(x, weight, sum);
  }
  static FloatVector finish(FloatVector sum, int) { return sum; }
};

struct MaximumOp {
  static FloatVector start() { return broadcast(-__builtin_inff()); }
  static constexpr const float* operand(int, int) { return nullptr; }
  static FloatVector step(FloatVector largest, FloatVector x, FloatVector) { return maximum(x, largest); }
  static FloatVector finish(FloatVector largest, int) { return largest; }
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
      return valid == 1 ? FloatVector{*from} : load_partial(from, valid);  // one: means over channels
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
PHONEBIT_NOINLINE void reduce_block(const void* untyped_op, const Window& window, size_t pixel_step,
                                    int channel0, int channels, const Results& out) {
  const Op& op = *(const Op*)untyped_op;
  constexpr int kVectors = kPixels == 1 ? kWindowVectors : kSharedVectors;
  int c = 0;
  for (; c + kVectors * kLanes <= channels; c += kVectors * kLanes)
    reduce_window<kPixels, kVectors, false>(op, window, pixel_step, channel0 + c, kLanes, out.from(0, c));
  for (; c + kLanes <= channels; c += kLanes)
    reduce_window<kPixels, 1, false>(op, window, pixel_step, channel0 + c, kLanes, out.from(0, c));
  if (c < channels)
    reduce_window<kPixels, 1, true>(op, window, pixel_step, channel0 + c, channels - c, out.from(0, c));
}

/// An Op without its type: what follows is the same code for all of them.
struct Reduction {
  using Function = void (*)(const void* op, const Window&, size_t pixel_step, int channel0, int channels,
                            const Results&);
  const void* op;
  Function one_pixel, shared_pixels;  // reduce_block of an Op
  bool adds_blocks;                   // of docs/format.md, "Averages"

  /// A window of more taps is reduced in pieces: these blocks, or parts of a chain.
  int piece_taps() const { return adds_blocks ? 14 : (int)(kPiece / kChannelBlock); }
  void run(bool several, const Window& window, size_t pixel_step, int channel0, int channels,
           const Results& out) const {
    (several ? shared_pixels : one_pixel)(op, window, pixel_step, channel0, channels, out);
  }
};

template <class Op>
static inline Reduction reduction(const Op& op, bool adds_blocks) {
  return {&op, reduce_block<1, Op>, reduce_block<kSharedPixels, Op>, adds_blocks};
}

/// A block of taps and the sum of those before, of some pixels and the whole vectors that their channels need.
struct BlockSums {
  static constexpr int kMaxValues = kSharedPixels * kChannelBlock;
  alignas(64) float block[kMaxValues], sum[kMaxValues],
      rest[kMaxValues];  // rest: what rounding took from the sum
  int count, blocks = 0;

  /// Where the next block goes: the first one is the sum.
  float* next() { return blocks++ ? block : sum; }
  void add(bool is_last) {
    for (int i = 0; i < count; i += kLanes) {
      FloatVector lost = {};
      if (blocks > 1) {
        const FloatVector before = load(sum + i), added = load(block + i) + load(rest + i);
        const FloatVector after = before + added;
        store(sum + i, after);
        if (is_last) continue;
        const FloatVector of_added = after - before;
        lost = (before - (after - of_added)) + (added - of_added);  // Knuth's two-sum: exact
        lost = lost == lost ? lost : FloatVector{};                 // an infinite sum stays one
      }
      store(rest + i, lost);
    }
  }
};

/// Windows that are large: some rows at a time, or a run of one row; all counted from the window's own first tap, be
/// it inside the map or not. False if it was stopped.
static __attribute__((noinline)) bool reduce_in_pieces(const Reduction& reduction, const Window& whole,
                                                       int kernel_w, bool several, size_t pixel_step,
                                                       int channel0, int channels, Pieces& pieces,
                                                       const Results& out) {
  const int max_taps = reduction.piece_taps();
  const TapSpan rows = whole.rows, columns = whole.columns;
  const int pixels = several ? kSharedPixels : 1, piece_rows = kernel_w < max_taps ? max_taps / kernel_w : 1;
  const auto cut = [](TapSpan span, int first, int size) {
    return TapSpan{first > span.begin ? first : span.begin,
                   first + size < span.end ? first + size : span.end};
  };
  const int width = (channels + kLanes - 1) / kLanes * kLanes;  // floats per pixel
  BlockSums sums;
  sums.count = pixels * width;
  Window piece = whole;
  for (int y = rows.begin / piece_rows * piece_rows; y < rows.end; y += piece_rows) {
    piece.rows = cut(rows, y, piece_rows);
    for (int x = columns.begin / max_taps * max_taps; x < columns.end; x += max_taps) {
      piece.columns = cut(columns, x, max_taps);
      piece.first_tap = whole.first_tap + (piece.rows.begin - rows.begin) * whole.row_step +
                        (piece.columns.begin - columns.begin) * whole.tap_step;
      const bool is_last = piece.rows.end == rows.end && piece.columns.end == columns.end;
      piece.is_finished = is_last && !reduction.adds_blocks;
      reduction.run(several, piece, pixel_step, channel0, channels,
                    reduction.adds_blocks ? Results{sums.next(), (size_t)width} : out);
      if (reduction.adds_blocks) {
        sums.add(is_last);
      } else {
        piece.is_begun = true;
      }
      const int taps = (piece.rows.end - piece.rows.begin) * (piece.columns.end - piece.columns.begin);
      if (pieces.is_end_after((int64_t)taps * pixels * channels)) return false;
    }
  }
  if (reduction.adds_blocks) {
    for (int p = 0; p < pixels; p++) {
      for (int c = 0; c < width; c += kLanes)
        store(out.values + p * out.pixel_step + c,
              AverageOp::finish(load(sums.sum + p * width + c), whole.taps));
    }
  }
  return true;
}

static __attribute__((noinline)) void reduce_rows(const Reduction& reduction, const ConvShape& s,
                                                  const float* input, int row_begin, int row_end,
                                                  const Epilogue& epilogue, const Stop& stop) {
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
          if ((int64_t)s.kernel_h * s.kernel_w <= reduction.piece_taps()) {
            reduction.run(several, window, pixel_step, channel0, block, out);
          } else if (!reduce_in_pieces(reduction, window, s.kernel_w, several, pixel_step, channel0, block,
                                       pieces, out)) {
            return;
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
  const DepthwiseOp op{weights, s.kernel_w, s.in_c};
  reduce_rows(reduction(op, false), s, input, row_begin, row_end, epilogue, stop);
}

static void max_pool_f32(const ConvShape& s, const float* input, int row_begin, int row_end,
                         const Epilogue& epilogue, const Stop& stop) {
  reduce_rows(reduction(MaximumOp{}, false), s, input, row_begin, row_end, epilogue, stop);
}

static void average_pool_f32(const ConvShape& s, const float* input, int row_begin, int row_end,
                             const Epilogue& epilogue, const Stop& stop) {
  reduce_rows(reduction(AverageOp{}, true), s, input, row_begin, row_end, epilogue, stop);
}
