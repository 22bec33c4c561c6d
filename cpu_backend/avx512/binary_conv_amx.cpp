// @kernel   bconv2d_u8_tiles__avx512amx   binary convolution on the AMX unit, threshold or epilogue fused
// @math     acc = base_M + 4 sum a b - 2 sum a over bits a of the map and b of the filter, see below
// @in       packed bits, expanded in scratch to a byte each
// @out      packed bits, or float32 tiles
// @weights  [Cout/16][chunk of 64 channels][tap][128 bytes], one bit each, expanded on the way into the unit
// @requires AMX-TILE, AMX-INT8, and the operating system's permission to use tile registers
// @source   own
//
// The unit multiplies a tile A of up to 16 pixels x 64 channels with a tile B of 64 channels x 16 filters in
// 16 cycles: 1024 multiply-accumulates a cycle, three times what xor and popcount give on the same core.
//
// Bytes are bits, not signs. With x = 2 a - 1 and w = 2 b - 1 over the taps V inside the map, of in_c
// channels each,
//   acc = sum_V x w = 4 sum a b - 2 sum a - 2 sum_V b + |V| in_c.
// The last two terms are a constant per filter and border class. Writing padding as a = 0, except for
// pad_value +1, the first two may run over all taps; sum a is one number per window, shared by all filters.
// This costs an addition per 16 results, but a unit that multiplies zeros draws less power: signs lower the
// clock by a sixth (measured). B holds 2 b, so that a threshold is 2 sum a b >= ceil((T - base) / 2) + sum a.
//
// Weights stay packed in memory: as bytes they would be eight times larger, and the third-level cache, not
// arithmetic, would set the pace of every network. A tile of B is expanded into a small ring some products
// before it is needed; that work, and comparing the previous product's results, runs in the shadow of the
// unit.
//
// The accumulators are tmm0 .. tmm5, A is tmm6 and B is tmm7: six tiles of A for one of B, so that expanding
// B stays in the shadow. tile_map.inl says how the map is laid out for this.
#include <cpuid.h>

#include "binary_conv_kernels.h"
#include "portable/intrinsics.h"
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace phonebit::engine::cpu {
namespace {

#include "popcount_layout.inl"
#include "portable/epilogue.inl"
#include "tile_map.inl"
#include "tile_unit.inl"

constexpr int kTileFilters = 16;
constexpr int kTilesInBlock = kChannelBlock / kTileFilters;
constexpr size_t kTileBits = kChunk * kTileFilters / 8;  // bytes of a packed tile of B
constexpr size_t kTileBytes = kChunk * kTileFilters;

bool supports(const ConvShape& s) {
  static const bool permitted = tile_unit_permitted();
  return permitted && fills_tiles(s);
}

// Behind the head: step positions, then the tiles of B.
size_t step_bytes(const ConvShape& s) { return round_up_64(sizeof(uint32_t) * Planes(s).steps()); }

/// Tiles of 16 filters; whole words of output are written, so an odd one is followed by an empty one.
int filter_tiles(const ConvShape& s) { return 2 * words(s.out_c); }

size_t packed_bytes(const ConvShape& s) {
  return head_bytes(s, border_class_count(s)) + step_bytes(s) +
         filter_tiles(s) * Planes(s).steps() * kTileBits;
}

/// One tile of B: filters `first` .. `first` + 15, channels of one chunk, one tap. Byte j of row r of the
/// expanded tile is channel 4 r + j % 4 of filter j / 4 (the operand order of a dot product of four bytes);
/// its bit is bit r % 8 of byte j of one of two vectors, so that a shift and an AND expand a row. Channels
/// beyond in_c and filters beyond out_c are 0.
void pack_tile(const ConvShape& s, const uint32_t* weights, int first, int chunk, int tap, uint8_t* out) {
  const int words_in = words(s.in_c);
  const size_t filter_words = (size_t)s.kernel_h * s.kernel_w * words_in;
  __builtin_memset(out, 0, kTileBits);
  for (int n = 0; n < kTileFilters && first + n < s.out_c; ++n) {
    const uint32_t* const tap_words = weights + (first + n) * filter_words + tap * words_in;
    for (int half = 0; half < 2 && chunk * 2 + half < words_in; ++half) {
      // Every fourth channel goes to the same byte.
      for (int j = 0; j < 4; ++j)
        out[half * 64 + 4 * n + j] = (uint8_t)_pext_u32(tap_words[chunk * 2 + half], 0x11111111u << j);
    }
  }
}

void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed) {
  const size_t filter_words = (size_t)s.kernel_h * s.kernel_w * words(s.in_c);
  // Far beyond any sum, so that adding a window's ones cannot overflow.
  constexpr int32_t kNever = 1 << 30;
  pack_head(s, weights, kNever, packed, [&](int channel, int32_t border_base) {
    // border_base counts the filter's ones as differences; here they are a term of their own.
    int64_t ones = 0;
    for (size_t i = 0; i < filter_words; ++i) ones += __builtin_popcount(weights[channel * filter_words + i]);
    const int64_t base = border_base - 2 * ones;
    if (thresholds == nullptr) return (uint32_t)base;
    const int64_t room = thresholds[channel] - base;
    const int64_t limit = (room + (room & 1)) / 2;  // ceil(room / 2)
    return (uint32_t)(limit > kNever ? kNever : limit < -kNever ? -kNever : limit);
  });
  const Planes planes(s);
  uint32_t* const steps = (uint32_t*)PackedLayer(s, packed).weights;
  for (int i = 0; i < planes.steps(); ++i) {
    steps[i] = (uint32_t)planes.step(s, i / planes.taps, i % planes.taps);
  }
  uint8_t* tiles = (uint8_t*)steps + step_bytes(s);
  for (int tile = 0; tile < filter_tiles(s); ++tile) {
    for (int i = 0; i < planes.steps(); ++i, tiles += kTileBits) {
      pack_tile(s, weights, tile * kTileFilters, i / planes.taps, i % planes.taps, tiles);
    }
  }
}

/// A from memory, and its product with B added to accumulator kTile.
template <int kTile>
PHONEBIT_INLINE void multiply(const char* pixels) {
  asm volatile("tileloadd (%0,%1,1), %%tmm6\n\ttdpbssd %%tmm7, %%tmm6, %%tmm%c2"
               :
               : "r"(pixels), "r"((size_t)kChunk), "i"(kTile)
               : "memory");
}

/// Tiles of B on their way into the unit: bits of consecutive tiles, over and over, expanded kAhead tiles
/// early.
class TileRing {
 public:
  TileRing(const char* bits, int tiles) : bits_(bits), tiles_(tiles) {
    for (int i = 0; i < kAhead; ++i) expand_next();
  }

  /// Expands one tile and returns the one whose turn it is.
  PHONEBIT_INLINE const char* next() {
    expand_next();
    return ring_ + (expanded_ - kAhead - 1) % kRing * kTileBytes;
  }

 private:
  static constexpr int kAhead = 2;  // tiles
  static constexpr unsigned kRing = 4;
  static constexpr int kPrefetchBytes = 1024;

  PHONEBIT_INLINE void expand_next() {
    // Twice the bit, so bit 1 of each byte: what a shift brings in from the byte beside it is masked out.
    const __m512i two = _mm512_set1_epi8(2);
    const char* const from = bits_ + (size_t)next_ * kTileBits;
    char* const to = ring_ + expanded_ % kRing * kTileBytes;
    _mm_prefetch(from + kPrefetchBytes, _MM_HINT_T0);
    _mm_prefetch(from + kPrefetchBytes + 64, _MM_HINT_T0);
    unroll<2>([&](auto half) PHONEBIT_LAMBDA_INLINE {
      const __m512i rows = _mm512_load_si512(from + 64 * half);
      unroll<8>([&](auto r) PHONEBIT_LAMBDA_INLINE {
        const __m512i row = r == 0 ? _mm512_slli_epi16(rows, 1) : _mm512_srli_epi16(rows, (r + 7) % 8);
        _mm512_store_si512(to + (half * 8 + r) * 64, _mm512_and_si512(row, two));
      });
    });
    ++expanded_;
    next_ = next_ + 1 == tiles_ ? 0 : next_ + 1;
  }

  alignas(64) char ring_[kRing * kTileBytes];
  const char* bits_;
  int tiles_;
  int next_ = 0;
  unsigned expanded_ = 0;
};

/// Output pixels of up to kTiles tiles. Positions between two output rows have no pixel, so `pixel_count` may
/// be less than the number of positions; pixels are consecutive all the same.
struct PixelGroup {
  int first_pixel = 0, pixel_count = 0;
  // Of each pixel: where its accumulators are, where its border class is in a block's head (both counted in
  // words), and the ones in its window.
  int position[kMostRows], border[kMostRows];
  int32_t ones[kMostRows];
};

/// Half a word of packed output; the layer's other code sees whole words.
typedef uint16_t HalfWord __attribute__((may_alias));

/// A product whose results wait for being turned into output while the unit works on the next one.
struct Results {
  const PixelGroup* group;
  const int32_t* accumulators;  // [position][16]
  const uint32_t* head;         // of these 16 filters
  HalfWord* bits;               // output of the first pixel; null in the epilogue form
  size_t bits_stride;
  float* values;  // [pixel][kChannelBlock], these 16 filters' columns
  bool done;

  PHONEBIT_INLINE void finish() {
    // Copies: the compiler must assume that stores change every field.
    const int* const positions = group->position;
    const int* const borders = group->border;
    const int32_t* const ones = group->ones;
    const int32_t* const sums = accumulators;
    const uint32_t* const entries = head;
    const int pixels = done ? 0 : group->pixel_count;
    done = true;
    if (bits != nullptr) {
      const size_t stride = bits_stride;
      HalfWord* out = bits;
      for (int i = 0; i < pixels; ++i, out += stride) {
        const __m512i entry = _mm512_load_si512(entries + borders[i]);
        const __m512i limit = _mm512_add_epi32(entry, _mm512_set1_epi32(ones[i]));
        *out = _mm512_cmpge_epi32_mask(_mm512_load_si512(sums + positions[i]), limit);
      }
    } else {
      float* out = values;
      for (int i = 0; i < pixels; ++i, out += kChannelBlock) {
        const __m512i entry = _mm512_load_si512(entries + borders[i]);
        const __m512i sum =
            _mm512_sub_epi32(_mm512_load_si512(sums + positions[i]), _mm512_set1_epi32(ones[i]));
        _mm512_store_ps(out, _mm512_cvtepi32_ps(_mm512_add_epi32(entry, _mm512_slli_epi32(sum, 1))));
      }
    }
  }
};

/// `rows` x kCount positions from `pixels` on times the ring's next 16 filters, into out[position][16].
/// Finishes `waiting` meanwhile.
template <int kCount>
PHONEBIT_NOINLINE void multiply_group(const char* pixels, int rows, const uint32_t* steps, int step_count,
                                      TileRing& ring, Results& waiting, int32_t* out) {
  // On Granite Rapids a tile store that follows the last one by more than some 2400 cycles takes 1000 cycles
  // (measured; it looks like a part of the core that goes to sleep). A store of no use now and then costs
  // next to nothing.
  constexpr int kStepsBetweenStores = 8;
  alignas(64) int32_t spare[kTileBytes / sizeof(int32_t)];
  unroll<kCount>([&](auto t) PHONEBIT_LAMBDA_INLINE { tile_zero<t>(); });
  const size_t tile_stride = (size_t)rows * kChunk;
  // All at once: loops of a few rows a step end in more mispredicted branches than they save. Two steps late,
  // when the last product's tile stores have reached the cache.
  const int finish_step = step_count > 2 ? 2 : step_count - 1;
  for (int i = 0; i < step_count; ++i) {
    const char* const tile_b = ring.next();
    if (i == finish_step) waiting.finish();
    const char* const from = pixels + (size_t)steps[i] * kChunk;
    tile_load<7>(tile_b, 64);
    if (i % kStepsBetweenStores == kStepsBetweenStores - 1)
      tile_store<7>(spare, kTileFilters * sizeof(int32_t));
    unroll<kCount>([&](auto t) PHONEBIT_LAMBDA_INLINE { multiply<t>(from + t * tile_stride); });
  }
  unroll<kCount>([&](auto t) PHONEBIT_LAMBDA_INLINE {
    tile_store<t>(out + (size_t)t * rows * kTileFilters, kTileFilters * sizeof(int32_t));
  });
}

using MultiplyFn = void (*)(const char*, int, const uint32_t*, int, TileRing&, Results&, int32_t*);
constexpr MultiplyFn kMultiply[kTiles] = {multiply_group<1>, multiply_group<2>, multiply_group<3>,
                                          multiply_group<4>, multiply_group<5>, multiply_group<6>};

/// Fills `group` with the pixels of positions [q_begin, q_end).
void describe_group(const ConvShape& s, const Planes& planes, const PackedLayer& layer, const int32_t* ones,
                    const uint32_t* steps, int q_begin, int q_end, PixelGroup* group) {
  alignas(64) int32_t sums[kMostRows];
  for (int i = 0; i < q_end - q_begin; i += 16) {
    __m512i sum = _mm512_setzero_si512();
    for (int tap = 0; tap < planes.taps; ++tap) {
      sum = _mm512_add_epi32(sum, _mm512_loadu_si512(ones + q_begin + i + steps[tap]));
    }
    _mm512_store_si512(sums + i, sum);
  }
  int y = q_begin / planes.pitch;
  int pixels = 0;
  for (int row = y * planes.pitch; row < q_end; row += planes.pitch, ++y) {
    const int begin = row > q_begin ? row : q_begin;
    const int end = row + s.out_w < q_end ? row + s.out_w : q_end;
    if (begin >= end) continue;
    if (pixels == 0) group->first_pixel = y * s.out_w + begin - row;
    const int row_class = layer.borders.rows()[y] * layer.borders.column_count;
    const int* const column_classes = layer.borders.columns(s) - row;
    for (int q = begin; q < end; ++q, ++pixels) {
      group->position[pixels] = (q - q_begin) * kTileFilters;
      group->border[pixels] = (row_class + column_classes[q]) * kChannelBlock;
      group->ones[pixels] = sums[q - q_begin];
    }
  }
  group->pixel_count = pixels;
}

void run(const ConvShape& s, const void* packed, const uint32_t*, const void* scratch,
         const OutputRange& range, const AccumulatorSink& sink) {
  if (range.pixel_begin >= range.pixel_end || range.block_begin >= range.block_end) return;
  const Planes planes(s);
  const PackedLayer layer(s, packed);
  const uint32_t* const steps = (const uint32_t*)layer.weights;
  const int32_t* const ones = (const int32_t*)((const char*)scratch + ones_offset(planes));
  const int tile_begin = range.block_begin * kTilesInBlock;
  const int tile_limit = range.block_end * kTilesInBlock;
  const int tile_end = tile_limit < filter_tiles(s) ? tile_limit : filter_tiles(s);

  const auto position = [&](int pixel) { return pixel / s.out_w * planes.pitch + pixel % s.out_w; };
  const int q_begin = position(range.pixel_begin), q_end = position(range.pixel_end - 1) + 1;
  // As few tiles as possible, then as few rows in each as possible: the unit takes a cycle for each row.
  const int tiles = (q_end - q_begin + kTileRows - 1) / kTileRows;
  const int rows = (q_end - q_begin + tiles - 1) / tiles;
  const int groups = (tiles + kTiles - 1) / kTiles;
  configure_tiles(rows);

  const char* const bits = layer.weights + step_bytes(s);
  TileRing ring(bits + (size_t)tile_begin * planes.steps() * kTileBits,
                (tile_end - tile_begin) * planes.steps());
  alignas(64) int32_t accumulators[2][kMostRows * kTileFilters];
  alignas(64) float values[kMostRows * kChannelBlock];
  PixelGroup group_buffers[2];
  Results waiting = {&group_buffers[1], nullptr, nullptr, nullptr, 0, nullptr, true};
  int turn = 0;
  for (int g = 0; g < groups; ++g) {
    const int first = tiles * g / groups, count = tiles * (g + 1) / groups - first;
    const int q = q_begin + first * rows;
    const int q_group_end = q + count * rows < q_end ? q + count * rows : q_end;
    PixelGroup& group = group_buffers[g % 2];
    describe_group(s, planes, layer, ones, steps, q, q_group_end, &group);
    for (int tile = tile_begin; tile < tile_end; ++tile, turn ^= 1) {
      const int block = tile / kTilesInBlock, column = tile % kTilesInBlock * kTileFilters;
      kMultiply[count - 1]((const char*)scratch + (size_t)q * kChunk, rows, steps, planes.steps(), ring,
                           waiting, accumulators[turn]);
      waiting = {&group, accumulators[turn], layer.block_head(block) + column, nullptr, 0, values + column,
                 false};
      if (sink.threshold_bits != nullptr) {
        waiting.bits = (HalfWord*)(sink.threshold_bits + (size_t)group.first_pixel * sink.pixel_words) + tile;
        waiting.bits_stride = (size_t)sink.pixel_words * 2;
      } else if (column + kTileFilters == kChannelBlock || tile + 1 == tile_end) {
        waiting.finish();
        apply_epilogue(*sink.epilogue, values, group.first_pixel, group.pixel_count, block * kChannelBlock,
                       block_channels(s, block));
      }
    }
  }
  waiting.finish();
  release_tiles();
}

}  // namespace

const BinaryConvKernel kAmxConv_avx512 = {
    "bconv2d_u8_tiles__avx512amx",
    supports,
    packed_bytes,
    pack_weights,
    scratch_bytes,
    prepare_rows,
    prepare_input,
    kMatrixPixels,
    run,
};

}  // namespace phonebit::engine::cpu
