// The pair-table form of a binary convolution: geometry, packing and the walk over tiles. The inner loop and the
// compare are in binary_conv_pair_table.cpp.
//
// Idea. A byte shuffle looks up 16 bytes at once in a table of 16. Index it with 4 bits of a filter, one
// filter per byte lane; let the table hold popcount(index xor a) for 4 activation bits `a`: one shuffle is 4
// xors and 4 popcounts in every lane. The count is at most 4, so a byte has room for *two* output pixels:
//   table[a0 + 16 a1][i] = popcount(i ^ a0) + 16 popcount(i ^ a1),    256 tables of 16 bytes, 4 KB, in L1.
// A pair of pixels costs one shuffle and one addition for 4 bits of each channel, half of a table for one
// pixel.
//
// Sums. Three entries add up to fields of at most 12 < 16: t = x1 + x2 + x3 = L + 16 H has not carried. Then
//   A += t           (mod 2^8 or 2^16: may wrap),      B += t >> 4 = H,
//   sum of L = A - 16 B,                               sum of H = B,
// so splitting the fields needs no mask for L: 3 shuffles and 6 other operations for 3 x 4 bits x 2 pixels per
// lane, where a table for one pixel needs 6 and 6. A byte holds 255 /
// 4 = 63 entries: after at most kChunkSteps = 60 the sums are widened to 16 bits, unless the window ends
// there.
//
// Activations are prepared as the byte offsets of their tables: avx2/pair_map.inl.
//
// Weights: [Cout/64][step][64 x u8], a step is 4 bits. A window is read in runs of steps that lie together in
// the map: a row of taps, or one tap if dilated. Runs are filled up to kRunSteps; a filler's index has bit 7
// set, for which shuffles return 0, so that what it reads does not matter.
//
// Counts, bases and limits: portable/border_classes.inl.
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h.
#pragma once

#include "pair_map.inl"
#include "portable/epilogue.inl"

constexpr int kChunkSteps = 60;                // 60 * 4 <= 255
constexpr int kPartSteps = 16380;              // 16380 * 4 <= 65535, with room for a limit one above
constexpr int kTilePixels = kPairTablePixels;  // two pairs
constexpr uint8_t kFiller = 0x80;
constexpr size_t kWeightSlack = 64;         // loops may load one step ahead
constexpr size_t kChunkBytes = 512 * 1024;  // of the prepared map that all blocks read before the next pixels

/// Steps that lie together, for the inner loops: pointer + end_offset is one after the last step's entry,
/// and an index runs from minus_bytes up to 0.
struct Segment {
  int64_t end_offset;   // bytes
  int32_t minus_bytes;  // -2 * steps
  int32_t after;        // kGoOn, kWiden, or kEndPart
};
constexpr int kGoOn = 0, kWiden = 1, kEndPart = 2;

/// A window as runs of taps.
struct PairRuns {
  int per_row, taps;  // runs in a kernel row, taps in a run

  explicit PairRuns(const ConvShape& s)
      : per_row(s.dilation_w == 1 ? 1 : s.kernel_w), taps(s.dilation_w == 1 ? s.kernel_w : 1) {}
  int steps(const PairMap& map) const { return taps * map.steps; }
  int filled(const PairMap& map) const { return (steps(map) + kRunSteps - 1) / kRunSteps * kRunSteps; }
};

struct SegmentCount {
  int segments, parts;
};

/// Cuts the runs into segments. Writes them unless `out` is null.
PHONEBIT_RARE static SegmentCount plan_segments(const ConvShape& s, Segment* out) {
  const PairMap map(s);
  const PairRuns runs(s);
  const int units = runs.filled(map) / kRunSteps, chunk_units = kChunkSteps / kRunSteps;
  const int pieces = (units + chunk_units - 1) / chunk_units;
  SegmentCount count = {0, 1};
  int in_chunk = 0, in_part = 0;
  for (int row = 0; row < s.kernel_h; ++row) {
    for (int run = 0; run < runs.per_row; ++run) {
      const size_t start =
          (size_t)row * s.dilation_h * map.row_stride + (size_t)run * s.dilation_w * map.steps;
      for (int piece = 0; piece < pieces; ++piece) {
        // Equal pieces: loops of equal length are easier to predict, and no piece is tiny.
        const int begin = (int)((int64_t)units * piece / pieces) * kRunSteps;
        const int end = (int)((int64_t)units * (piece + 1) / pieces) * kRunSteps;
        const int length = end - begin;
        if (in_chunk + length > kChunkSteps) {
          const bool part_full = in_part + length > kPartSteps;
          if (out != nullptr) out[-1].after = part_full ? kEndPart : kWiden;
          if (part_full) {
            ++count.parts;
            in_part = 0;
          }
          in_chunk = 0;
        }
        in_chunk += length;
        in_part += length;
        if (out != nullptr) *out++ = {(int64_t)(2 * (start + end)), -2 * length, kGoOn};
        ++count.segments;
      }
    }
  }
  if (out != nullptr) out[-1].after = kEndPart;
  return count;
}

/// Sums of a tile, by the length of its window: bytes up to kChunkSteps, else 16 bits up to kPartSteps, else
/// parts of 16 bits that are added up in 32 bits.
enum class SumForm : int64_t { kBytes, kShorts, kParts };

/// Packed: [border table][this][segments][per block, per border class: 64 entries of 4 bytes][weights].
/// An entry is a limit (bit = d < limit) or, for the epilogue form, a base (acc = base - 2 d). Limits of byte
/// and 16-bit sums are stored in that width and in the order of the sums, so that a compare needs no
/// conversion. AVX2 has signed compares only: these limits are less the sign bit.
struct PairLayer {
  SumForm form;
  int64_t segment_count, block_bytes, entries_offset, weights_offset;

  const Segment* segments() const { return (const Segment*)(this + 1); }
  const int32_t* entries(int block, int classes) const {
    return (const int32_t*)((const char*)this + entries_offset) + (size_t)block * classes * kChannelBlock;
  }
  const uint8_t* weights(int block) const {
    return (const uint8_t*)this + weights_offset + block_bytes * block;
  }
};

static inline int pair_blocks(const ConvShape& s) { return (s.out_c + kChannelBlock - 1) / kChannelBlock; }

PHONEBIT_RARE static PairLayer pair_layer(const ConvShape& s) {
  const SegmentCount count = plan_segments(s, nullptr);
  const PairRuns runs(s);
  const int64_t steps = (int64_t)s.kernel_h * runs.per_row * runs.filled(PairMap(s));
  PairLayer layer;
  layer.form = count.parts > 1 ? SumForm::kParts : steps > kChunkSteps ? SumForm::kShorts : SumForm::kBytes;
  layer.segment_count = count.segments;
  layer.block_bytes = steps * kChannelBlock;
  layer.entries_offset = (int64_t)round_up_64(sizeof(PairLayer) + sizeof(Segment) * count.segments);
  layer.weights_offset = layer.entries_offset +
                         (int64_t)sizeof(int32_t) * kChannelBlock * border_class_count(s) * pair_blocks(s);
  return layer;
}

static size_t pair_packed_bytes(const ConvShape& s) {
  const PairLayer layer = pair_layer(s);
  return border_table_bytes(s) + layer.weights_offset + layer.block_bytes * pair_blocks(s) + kWeightSlack;
}

/// The steps of one filter, 64 bytes apart.
static void pack_filter(const ConvShape& s, const uint32_t* filter, uint8_t* out) {
  const PairMap map(s);
  const PairRuns runs(s);
  const int words_in = words(s.in_c), fill = runs.filled(map) - runs.steps(map);
  for (int run = 0; run < s.kernel_h * runs.per_row; ++run) {
    for (int tap = 0; tap < runs.taps; ++tap, filter += words_in) {
      for (int i = 0; i < map.steps; ++i, out += kChannelBlock) *out = filter[i / 8] >> (4 * (i % 8)) & 15;
    }
    for (int i = 0; i < fill; ++i, out += kChannelBlock) *out = kFiller;
  }
}

static void pack_limit(SumForm form, uint32_t limit, int32_t* entries, int lane, int short_slot) {
  if (form == SumForm::kBytes) ((int8_t*)entries)[lane] = (int8_t)(limit - 0x80);
  if (form == SumForm::kShorts) ((int16_t*)entries)[short_slot] = (int16_t)(limit - 0x8000);
  if (form == SumForm::kParts) entries[lane] = (int32_t)limit;
}

template <class Simd>
PHONEBIT_RARE void pair_pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                                     void* packed) {
  write_border_table(s, packed);
  const BorderTable& borders = *(const BorderTable*)packed;
  PairLayer& layer = *(PairLayer*)((char*)packed + border_table_bytes(s));
  layer = pair_layer(s);
  plan_segments(s, (Segment*)layer.segments());
  const size_t filter_words = (size_t)s.kernel_h * s.kernel_w * words(s.in_c);
  for (int c = 0; c < pair_blocks(s) * kChannelBlock; ++c) {
    const int block = c / kChannelBlock, lane = c % kChannelBlock;
    // A filter that does not exist repeats the last one; its limit 0 keeps its bit off.
    const uint32_t* filter = weights + (c < s.out_c ? c : s.out_c - 1) * filter_words;
    pack_filter(s, filter, (uint8_t*)layer.weights(block) + lane);
    for_each_border_class(s, borders, [&](int index, TapSpan rows, TapSpan columns) {
      int32_t* entries = (int32_t*)layer.entries(block, borders.count()) + (size_t)index * kChannelBlock;
      const int32_t base = border_base(s, filter, rows, columns);
      if (thresholds == nullptr) {
        entries[lane] = base + (layer.form == SumForm::kParts ? 0 : Simd::kBaseBias);
        return;
      }
      const uint32_t max_limit = layer.form == SumForm::kBytes    ? 4 * kChunkSteps + 1
                                 : layer.form == SumForm::kShorts ? 4 * kPartSteps + 1
                                                                  : INT32_MAX;
      const uint32_t limit = c < s.out_c ? popcount_limit(base, thresholds[c], max_limit) : 0;
      pack_limit(layer.form, limit, entries, lane, Simd::short_slot(lane));
    });
  }
  __builtin_memset((uint8_t*)layer.weights(pair_blocks(s)), 0, kWeightSlack);
}

/// One tile of an output range: up to kTilePixels pixels in row-major order, as pairs.
struct PairTile {
  const uint16_t* windows[kTilePixels];  // that of a pair is its first pixel's
  int borders[kTilePixels];
  int first, count;
};

class PairWalk {
 public:
  PairWalk(const ConvShape& s, const PairMap& map, const BorderTable& borders, const uint16_t* scratch,
           int begin, int end)
      : shape_(s),
        map_(map),
        borders_(borders),
        scratch_(scratch),
        pixel_(begin),
        end_(end),
        y_(begin / s.out_w),
        x_(begin % s.out_w) {}

  bool next(PairTile& tile) {
    if (pixel_ >= end_) return false;
    tile.first = pixel_;
    tile.count = end_ - pixel_ < kTilePixels ? end_ - pixel_ : kTilePixels;
    for (int i = 0; i < tile.count; ++i) {
      tile.windows[i] = scratch_ + map_.window(shape_, y_, x_);
      tile.borders[i] = borders_.count() == 1 ? 0 : borders_.class_of(shape_, y_, x_);
      if (++x_ == shape_.out_w) {
        x_ = 0;
        ++y_;
      }
    }
    pixel_ += tile.count;
    return true;
  }

 private:
  const ConvShape& shape_;
  const PairMap& map_;
  const BorderTable& borders_;
  const uint16_t* scratch_;
  int pixel_, end_, y_, x_;
};

/// Sums of a tile in memory: [pixel][64], bytes in the order of channels.
struct alignas(64) ByteSums {
  uint8_t lanes[kTilePixels * kChannelBlock];
  void clear() {}  // written, not added to
};

/// The same with 16 bits, in Simd's order of channels. They start at the sign bit, for the signed compare.
struct alignas(64) ShortSums {
  static constexpr uint16_t kBias = 0x8000;
  uint16_t lanes[kTilePixels * kChannelBlock];
  void clear() {
#ifndef __clang__  // which unrolls all of run_block for it
#pragma GCC unroll 64
#endif
    for (uint16_t& lane : lanes) lane = kBias;
  }
};

/// Where a block's results go.
struct BlockSink {
  const AccumulatorSink& sink;
  int block, channels;

  BlockSink(const ConvShape& s, int block_index, const AccumulatorSink& to)
      : sink(to), block(block_index), channels(s.out_c - block_index * kChannelBlock) {
    if (channels > kChannelBlock) channels = kChannelBlock;
  }
  bool wants_bits() const { return sink.threshold_bits != nullptr; }
  void put_bits(uint64_t bits, int pixel) const {
    uint32_t* out = sink.threshold_bits + (size_t)pixel * sink.pixel_words + block * (kChannelBlock / 32);
    out[0] = (uint32_t)bits;
    if (channels > 32) out[1] = (uint32_t)(bits >> 32);
  }
  void put_values(float (&values)[kTilePixels][kChannelBlock], const PairTile& tile) const {
    apply_epilogue(*sink.epilogue, values[0], tile.first, tile.count, block * kChannelBlock, channels);
  }
};

template <class Simd, class Sums>
PHONEBIT_NOINLINE void run_block(const PairLayer& layer, const uint8_t* weights, const int32_t* entries,
                                 PairWalk walk, const BlockSink& sink) {
  const Segment *begin = layer.segments(), *end = begin + layer.segment_count;
  Sums sums;
  PairTile tile;
  while (walk.next(tile)) {
    sums.clear();
    Simd::accumulate(tile, weights, begin, end, sums);
    const int32_t* of_class[kTilePixels];
    for (int p = 0; p < tile.count; ++p) of_class[p] = entries + (size_t)tile.borders[p] * kChannelBlock;
    if (!sink.wants_bits()) {
      Simd::finish(sums, tile, of_class, sink);
      continue;
    }
    for (int p = 0; p < tile.count; ++p) sink.put_bits(Simd::bits(sums, p, of_class[p]), tile.first + p);
  }
}

/// Windows of more than 65520 bits: memory-bound by far, so nothing but correct.
template <class Simd>
PHONEBIT_RARE PHONEBIT_NOINLINE void run_block_in_parts(const PairLayer& layer, const uint8_t* block_weights,
                                                        const int32_t* entries, PairWalk walk,
                                                        const BlockSink& sink) {
  alignas(64) int32_t counts[kTilePixels][kChannelBlock];
  alignas(64) float values[kTilePixels][kChannelBlock];
  ShortSums sums;
  PairTile tile;
  while (walk.next(tile)) {
    __builtin_memset(counts, 0, sizeof(counts));
    const uint8_t* weights = block_weights;
    for (const Segment *begin = layer.segments(), *end = begin + layer.segment_count; begin != end;) {
      const Segment* part_end = begin;
      while ((part_end++)->after != kEndPart) continue;
      sums.clear();
      weights = Simd::accumulate(tile, weights, begin, part_end, sums);
      for (int i = 0; i < kTilePixels * kChannelBlock; ++i) {
        const int p = i / kChannelBlock, lane = i % kChannelBlock;
        counts[p][lane] += Simd::count(sums.lanes + p * kChannelBlock, lane);
      }
      begin = part_end;
    }
    for (int p = 0; p < tile.count; ++p) {
      const int32_t* of_class = entries + (size_t)tile.borders[p] * kChannelBlock;
      uint64_t bits = 0;
      for (int c = 0; c < kChannelBlock; ++c) {
        bits |= (uint64_t)(counts[p][c] < of_class[c]) << c;
        values[p][c] = (float)(of_class[c] - 2 * counts[p][c]);
      }
      if (sink.wants_bits()) sink.put_bits(bits, tile.first + p);
    }
    if (!sink.wants_bits()) sink.put_values(values, tile);
  }
}

/// Calls body(block, pixels of a chunk): blocks of channels outside, pixels inside, so that a block's weights stay in
/// the nearest caches; but no more pixels at a time than have their prepared windows in L2.
template <class Body>
PHONEBIT_INLINE void for_each_chunk(const ConvShape& s, const PairMap& map, const OutputRange& range,
                                    const Body& body) {
  const size_t pixel_bytes = sizeof(uint16_t) * map.steps * s.stride_h * s.stride_w;
  const size_t max_pixels = kChunkBytes / pixel_bytes / kTilePixels * kTilePixels;
  const int chunk = max_pixels < 16 * kTilePixels ? 16 * kTilePixels
                    : max_pixels < INT32_MAX / 2  ? (int)max_pixels
                                                  : INT32_MAX / 2;
  for (int begin = range.pixel_begin; begin < range.pixel_end;) {
    const int end = range.pixel_end - begin < chunk ? range.pixel_end : begin + chunk;
    for (int block = range.block_begin; block < range.block_end; ++block) body(block, begin, end);
    begin = end;
  }
}

static inline const PairLayer& packed_layer(const ConvShape& s, const void* packed) {
  return *(const PairLayer*)((const char*)packed + border_table_bytes(s));
}

template <class Simd>
void pair_run(const ConvShape& s, const void* packed, const uint32_t*, const void* scratch,
              const OutputRange& range, const AccumulatorSink& sink) {
  const BorderTable& borders = *(const BorderTable*)packed;
  const PairLayer& layer = packed_layer(s, packed);
  const PairMap map(s);
  for_each_chunk(s, map, range, [&](int block, int begin, int end) PHONEBIT_LAMBDA_INLINE {
    const PairWalk walk(s, map, borders, (const uint16_t*)scratch, begin, end);
    const auto run = layer.form == SumForm::kBytes    ? run_block<Simd, ByteSums>
                     : layer.form == SumForm::kShorts ? run_block<Simd, ShortSums>
                                                      : run_block_in_parts<Simd>;
    run(layer, layer.weights(block), layer.entries(block, borders.count()), walk, BlockSink(s, block, sink));
  });
}

template <class Simd>
constexpr BinaryConvKernel pair_table_kernel(const char* name, const BinaryPlanesKernel* planes) {
  return {name,
          pair_packed_bytes,
          pair_pack_weights<Simd>,
          pair_scratch_bytes,
          pair_prepare_rows,
          pair_prepare_input<Simd>,
          pair_run<Simd>,
          planes};
}
