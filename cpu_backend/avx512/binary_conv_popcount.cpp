// @kernel   bconv2d_b32__avx512vpopcnt   binary convolution, threshold or epilogue fused, any shape
// @math     d = sum over taps and words of popcount(x xor w);  acc = base_M - 2 d (border_classes.inl)
// @in       packed bits [H][W][words(Cin)]; a padded copy in scratch where a window reaches over the edge,
//           and for 16 channels or fewer the windows themselves as whole words (portable/packed_taps.inl)
// @out      packed bits [Ho][Wo][words(Cout)], or float32 tiles for the epilogue
// @weights  [Cout/64][tap][words(Cin)][64 x u32]
// @source   own; lanes as output channels after daBNN and LCE on Arm
//
// A vector holds one 32-bit word of 16 filters, and an activation word is broadcast against it: no horizontal
// sums, and the compare at the end is the packed output. Broadcasting 32 bits is part of the load; 16 bits
// would cost a shuffle on the port that counts bits (Intel), which is why lanes are not narrower.
//
// Three register tiles, with an activation broadcast shared by several vectors and a weight vector shared by
// several pixels: 4 pixels x 64 channels, 7 pixels x 32 channels for maps of 7 and 49 pixels and for 32
// filters, and 14 pixels x 16 channels for 16 filters.
#include "select.h"
#include "simd/avx512.h"

namespace phonebit::engine::cpu {
namespace {

#include "pixel_walk.inl"
#include "portable/epilogue.inl"
#include "portable/packed_taps.inl"

/// The convolution that is run.
ConvShape counted_shape(const ConvShape& s) { return packs_taps(s) ? packed_tap_shape(s) : s; }

size_t packed_bytes(const ConvShape& s) {
  return head_bytes(s, border_class_count(s)) + block_weights_bytes(counted_shape(s)) * block_count(s);
}

void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed) {
  pack_limits(s, weights, thresholds, packed);
  uint32_t* const out = (uint32_t*)PackedLayer(s, packed).weights;
  if (!packs_taps(s)) return interleave_filters(s, weights, out);
  const int taps = s.kernel_h * s.kernel_w;  // of one word each
  interleave_filters(packed_tap_shape(s), out, [&](int filter, int word) {
    return packed_tap_word(s, weights + (size_t)filter * taps, word);
  });
}

size_t scratch_bytes(const ConvShape& s) { return packs_taps(s) ? packed_tap_bytes(s) : padded_bytes(s); }

int prepare_rows(const ConvShape& s) { return packs_taps(s) ? s.out_h : padded_rows(s); }

void prepare_input(const ConvShape& s, const uint32_t* input, void* scratch, int row_begin, int row_end) {
  (packs_taps(s) ? pack_taps : pad_input)(s, input, scratch, row_begin, row_end);
}

/// A window is `rows` x `per_row` runs of `length` words that lie together in the map: a row of taps, or one
/// tap of a dilated window.
struct Runs {
  int rows, per_row, length;
  size_t row_step, run_step, word_step;  // words from one run or word to the next

  Runs(const ConvShape& s, const WindowMap& map)
      : rows(s.kernel_h),
        per_row(s.dilation_w == 1 ? 1 : s.kernel_w),
        length(s.dilation_w == 1 ? s.kernel_w * words(s.in_c) : words(s.in_c)),
        row_step((size_t)s.dilation_h * map.row_stride),
        run_step((size_t)s.dilation_w * map.pixel_stride),
        word_step(map.word_stride) {}
};

/// Adds to the counts.
template <int kPixels, int kVectors>
PHONEBIT_INLINE void count_tile(const Runs& runs, const uint32_t* const (&windows)[kPixels],
                                const uint32_t* weights, __m512i (&counts)[kPixels][kVectors]) {
  for (int row = 0; row < runs.rows; ++row) {
    for (int run = 0; run < runs.per_row; ++run) {
      const size_t offset = row * runs.row_step + run * runs.run_step;
      const uint32_t* from[kPixels];
      unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { from[p] = windows[p] + offset; });
      const size_t end = runs.length * runs.word_step;
      for (size_t i = 0; i < end; i += runs.word_step, weights += kChannelBlock) {
        __m512i w[kVectors];
        unroll<kVectors>([&](int q) PHONEBIT_LAMBDA_INLINE { w[q] = _mm512_load_si512(weights + 16 * q); });
        unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
          const __m512i x = _mm512_set1_epi32((int)from[p][i]);
          unroll<kVectors>([&](int q) PHONEBIT_LAMBDA_INLINE {
            counts[p][q] = _mm512_add_epi32(counts[p][q], _mm512_popcnt_epi32(_mm512_xor_si512(x, w[q])));
          });
        });
      }
    }
  }
}

template <int kPixels, int kVectors, bool kPlanes>
PHONEBIT_NOINLINE void run_block(const ConvShape& s, const PackedLayer& layer, const WindowMap& map,
                                 int block, const OutputRange& range, const AccumulatorSink& sink,
                                 const HighPlane& plane) {
  constexpr int kLaneChannels = 16 * kVectors;
  const Runs runs(s, map);
  const int channels = block_channels(s, block);
  const uint32_t* head = layer.block_head(block);
  const uint32_t* high_head = kPlanes ? plane.block_head(s, block) : nullptr;
  const uint32_t* weights = (const uint32_t*)(layer.weights + block_weights_bytes(s) * block);
  alignas(64) float values[kPixels][kChannelBlock];
  PixelTile<kPixels> tile;
  PixelWalk walk(s, map, layer.borders, range.pixel_begin, range.pixel_end);
  WeightsAhead ahead(weights, block_weights_bytes(s), block + 1 == range.block_end, walk.tiles<kPixels>());
  while (walk.next(tile)) {
    ahead.ask();
    for (int lane = 0; lane < channels; lane += kLaneChannels) {
      __m512i counts[kPixels][kVectors];
      clear(counts);
      if constexpr (kPlanes) {
        const uint32_t* windows[kPixels];
        unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { windows[p] = tile.windows[p] + plane.step; });
        count_tile(runs, windows, weights + lane, counts);
        make_double(counts);
      }
      count_tile(runs, tile.windows, weights + lane, counts);
      finish_tile(s, tile, counts, head, block, lane, sink, values, high_head);
    }
    if (sink.threshold_bits == nullptr) {
      apply_epilogue(*sink.epilogue, values[0], tile.first, tile.count, block * kChannelBlock, channels);
    }
  }
}

template <bool kPlanes>
void run_blocks(const ConvShape& s, const void* packed, const WindowMap& map, const OutputRange& range,
                const AccumulatorSink& sink, const HighPlane& plane) {
  const PackedLayer layer(s, packed);
  // Pixels computed by each tiling; a half-filled block of channels makes the wide tile compute twice as
  // many.
  const int pixels = range.pixel_end - range.pixel_begin;
  const int by_four = (pixels + 3) / 4 * 4;
  const int by_seven = (pixels + 6) / 7 * 7;
  for (int block = range.block_begin; block < range.block_end; ++block) {
    if (block_channels(s, block) <= 16) {
      run_block<14, 1, kPlanes>(s, layer, map, block, range, sink, plane);
    } else if (block_channels(s, block) <= 32 || by_seven < by_four) {
      run_block<7, 2, kPlanes>(s, layer, map, block, range, sink, plane);
    } else {
      run_block<4, 4, kPlanes>(s, layer, map, block, range, sink, plane);
    }
  }
}

WindowMap counted_map(const ConvShape& s, const uint32_t* input, const void* scratch) {
  return packs_taps(s) ? packed_tap_map(s, scratch) : window_map(s, input, scratch);
}

void run(const ConvShape& s, const void* packed, const uint32_t* input, const void* scratch,
         const OutputRange& range, const AccumulatorSink& sink) {
  run_blocks<false>(counted_shape(s), packed, counted_map(s, input, scratch), range, sink, {});
}

void run_planes(const ConvShape& s, const void* const* packed, const uint32_t* const* inputs,
                const void* scratch, const OutputRange& range, const Epilogue& epilogue) {
  const WindowMap low = counted_map(s, inputs[0], scratch);
  const WindowMap high = counted_map(s, inputs[1], (const char*)scratch + scratch_bytes(s));
  run_blocks<true>(counted_shape(s), packed[0], low, range, {nullptr, 0, &epilogue},
                   HighPlane::of(packed, low.words, high.words));
}

constexpr BinaryPlanesKernel kPlanesKernel = {any_shape, nullptr, run_planes};

}  // namespace

extern const BinaryConvKernel kPopcountConv_avx512 = {"bconv2d_b32__avx512vpopcnt",
                                                      packed_bytes,
                                                      pack_weights,
                                                      scratch_bytes,
                                                      prepare_rows,
                                                      prepare_input,
                                                      run,
                                                      &kPlanesKernel};

}  // namespace phonebit::engine::cpu
