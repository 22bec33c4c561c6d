// Two planes of levels in one pass of lookups: BinaryPlanesKernel in the pair-table form.
//
// A table of avx2/pair_table.inl holds the counts of two pixels, which have to be split apart again. Of the
// two planes of *one* pixel the weighted sum is wanted:
//   table[a0 + 16 a1][i] = popcount(i ^ a0) + 2 popcount(i ^ a1) <= 12,
// so that a shuffle and an addition do for 4 channels of both planes, without any splitting. A byte holds 255 / 12
// = 21 entries: the sums are widened to 16 bits after at most kPlanesSteps = 18, or where the segment ends.
//
// Both convolutions are packed by themselves, and the weights of one of them are used:
//   acc0 + 2 acc1 = (base0 - 2 d0) + 2 (base1 - 2 d1) = (base0 + 2 base1) - 2 (d0 + 2 d1).
// The scratch memory is laid out as a pair map's, with the planes of a pixel as its pairs.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and
// portable/epilogue.inl.
#pragma once

#include "pair_table.inl"

constexpr int kPlanesSteps = 18;             // 18 * 12 <= 255
constexpr int kMaxPlanesSteps = 65535 / 12;  // of a window

static bool planes_supports(const ConvShape& s) {
  return pair_layer(s).block_bytes <= (int64_t)kMaxPlanesSteps * kChannelBlock;
}

template <class Simd>
void planes_prepare_input(const ConvShape* shapes, const uint32_t* const* inputs, void* scratch,
                          int row_begin, int row_end) {
  const ConvShape& s = shapes[0];
  const PairMap map(s);
  for (int row = row_begin; row < row_end; ++row) {
    const PaddedRow low(s, inputs[0], row), high(shapes[1], inputs[1], row);
    expand_row<Simd>(s, map, low, high, 0, high, (s.out_w - 1) * s.stride_w,
                     (uint16_t*)scratch + row * map.row_stride);
  }
}

/// base0 + 2 base1 of a tile's pixels, kept while their border classes are the same.
template <class Simd>
class PlanesBases {
 public:
  /// `entries`: of both convolutions.
  void find(const PairTile& tile, const int32_t* const (&entries)[2],
            const int32_t* (&of_pixels)[kTilePixels]) {
    for (int p = 0; p < tile.count; ++p) {
      of_pixels[p] = bases_[p];
      if (classes_[p] == tile.borders[p]) continue;
      classes_[p] = tile.borders[p];
      const size_t at = (size_t)classes_[p] * kChannelBlock;
      for (int c = 0; c < kChannelBlock; ++c)
        bases_[p][c] = entries[0][at + c] + 2 * (entries[1][at + c] - Simd::kBaseBias);
    }
  }

 private:
  alignas(64) int32_t bases_[kTilePixels][kChannelBlock];
  int classes_[kTilePixels] = {-1, -1, -1, -1};
};

template <class Simd>
PHONEBIT_NOINLINE void run_planes_block(const PairLayer& layer, const uint8_t* weights,
                                        const int32_t* const (&entries)[2], PairWalk walk,
                                        const BlockSink& sink) {
  PlanesBases<Simd> bases;
  ShortSums sums;
  PairTile tile;
  while (walk.next(tile)) {
    // At the end of a range the last pixel is counted several times, and finished once.
    for (int p = tile.count; p < kTilePixels; ++p) tile.windows[p] = tile.windows[tile.count - 1];
    sums.clear();
    Simd::accumulate_planes(tile.windows, weights, layer.segments(), layer.segments() + layer.segment_count,
                            sums.lanes);
    const int32_t* of_pixels[kTilePixels];
    bases.find(tile, entries, of_pixels);
    Simd::finish(sums, tile, of_pixels, sink);
  }
}

template <class Simd>
void planes_run(const ConvShape& s, const void* const* packed, const uint32_t* const*, const void* scratch,
                const OutputRange& range, const Epilogue& epilogue) {
  const BorderTable& borders = *(const BorderTable*)packed[0];
  const PairLayer& layer = packed_layer(s, packed[0]);
  const PairMap map(s);
  const AccumulatorSink sink = {nullptr, 0, &epilogue};
  for_each_chunk(s, map, range, [&](int block, int begin, int end) PHONEBIT_LAMBDA_INLINE {
    const int32_t* const entries[2] = {layer.entries(block, borders.count()),
                                       packed_layer(s, packed[1]).entries(block, borders.count())};
    const PairWalk walk(s, map, borders, (const uint16_t*)scratch, begin, end);
    run_planes_block<Simd>(layer, layer.weights(block), entries, walk, BlockSink(s, block, sink));
  });
}

template <class Simd>
constexpr BinaryPlanesKernel planes_kernel() {
  return {planes_supports, planes_prepare_input<Simd>, planes_run<Simd>};
}
