// @kernel   bconv2d_3x3_carry_save__avx512vpopcnt   binary 3x3 convolution, stride 1,
//           threshold or epilogue fused
// @math     d = sum of popcount(x xor w), counted through full adders;
//           acc = base_M - 2 d (border_classes.inl)
// @in       packed bits [H][W][Cin/32], re-coded in scratch
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [Cout/32][26 Cin/32 vectors of pairs], see "steps" below
// @requires Cin a multiple of 32
// @source   own
//
// Let p, q, r be three words x xor w that go into the same count. A full adder replaces three popcounts by
// two:
//   |p| + |q| + |r| = 2 |maj(p, q, r)| + |p ^ q ^ r|,    maj(p, q, r) = ((p ^ q) & (p ^ r)) ^ p.
// The sums need no work here: p ^ q = (x_p ^ x_q) ^ (w_p ^ w_q), where one bracket is known per activation
// and one per filter. With these forms stored, maj is three instructions (xor, two ternary logics), and
// popcount and add make it five for two words that would have cost six.
//
// For the nine taps of a window, per word of channels:
//   V (3x)  the three taps of a column: carry from the forms a ^ b, a ^ c, a;
//           the column's sum is s = a ^ b ^ c
//   H       the three columns' sums: carry from s0 ^ s1, s0 ^ s2, s0;
//           the window's sum is t = s0 ^ s1 ^ s2
//   T       popcount(t ^ its filter form)
//   d = 2 (|V0| + |V1| + |V2| + |H|) + |T|:  23 instructions instead of 27 for nine words.
// Activation forms do not depend on the filter, so prepare_input writes them once: V and s for each column, H
// and t for each window, as groups of four words next to each other.
#include "select.h"
#include "simd/avx512.h"

namespace phonebit::engine::cpu {
namespace {

#include "pixel_walk.inl"
#include "portable/epilogue.inl"

constexpr int kForms = 4;          // words in a group: three forms of a carry, and the sum
constexpr int kLaneChannels = 32;  // channels of a register tile
constexpr int kVectors = kLaneChannels / 16;

/// Words of one half block of filters: 3 V steps and an H step of three forms, and a T step of one.
size_t half_block_words(const ConvShape& s) { return (size_t)words(s.in_c) * (4 * 3 + 1) * kLaneChannels; }

size_t packed_bytes(const ConvShape& s) {
  return head_bytes(s, border_class_count(s)) + sizeof(uint32_t) * 2 * block_count(s) * half_block_words(s);
}

/// The forms whose carry is maj(a, b, c), one filter of `kLaneChannels`.
void put_forms(uint32_t* out, uint32_t a, uint32_t b, uint32_t c) {
  out[0] = a ^ b;
  out[kLaneChannels] = a ^ c;
  out[2 * kLaneChannels] = a;
}

void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed) {
  pack_limits(s, weights, thresholds, packed);
  uint32_t* const out = (uint32_t*)PackedLayer(s, packed).weights;
  const size_t words_in = words(s.in_c);
  const size_t step = 3 * kLaneChannels;
  for (int c = 0; c < block_count(s) * kChannelBlock; ++c) {
    uint32_t* const lane = out + c / kLaneChannels * half_block_words(s) + c % kLaneChannels;
    for (size_t i = 0; i < words_in; ++i) {
      uint32_t sums[3] = {0, 0, 0};
      for (size_t x = 0; x < 3; ++x) {
        uint32_t taps[3] = {0, 0, 0};
        for (size_t y = 0; y < 3 && c < s.out_c; ++y) taps[y] = weights[((c * 3 + y) * 3 + x) * words_in + i];
        put_forms(lane + (x * words_in + i) * step, taps[0], taps[1], taps[2]);
        sums[x] = taps[0] ^ taps[1] ^ taps[2];
      }
      put_forms(lane + (3 * words_in + i) * step, sums[0], sums[1], sums[2]);
      lane[4 * words_in * step + i * kLaneChannels] = sums[0] ^ sums[1] ^ sums[2];
    }
  }
}

// Scratch: for each output row, column groups of touched_columns pixels, window groups of out_w pixels, and
// the column sums, which the window groups are made of.
struct RowForms {
  size_t columns, windows, sums, row_words;

  explicit RowForms(const ConvShape& s) {
    const size_t words_in = words(s.in_c);
    columns = 0;
    windows = columns + touched_columns(s) * words_in * kForms;
    sums = windows + s.out_w * words_in * kForms;
    row_words = sums + touched_columns(s) * words_in;
  }
};

size_t scratch_bytes(const ConvShape& s) {
  return round_up_64(sizeof(uint32_t) * RowForms(s).row_words * s.out_h);
}

int prepare_rows(const ConvShape& s) { return s.out_h; }

/// Interleaves four streams: out gets (a0, b0, c0, d0), (a1, b1, c1, d1), …
inline void interleave(__m512i a, __m512i b, __m512i c, __m512i d, uint32_t* out) {
  const __m512i ab_low = _mm512_unpacklo_epi32(a, b), ab_high = _mm512_unpackhi_epi32(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi32(c, d), cd_high = _mm512_unpackhi_epi32(c, d);
  // Group g of each 128-bit lane; the lanes are then sorted out: lane l of all groups goes to 64 l bytes.
  const __m512i g0 = _mm512_unpacklo_epi64(ab_low, cd_low), g1 = _mm512_unpackhi_epi64(ab_low, cd_low);
  const __m512i g2 = _mm512_unpacklo_epi64(ab_high, cd_high), g3 = _mm512_unpackhi_epi64(ab_high, cd_high);
  const __m512i g01_low = _mm512_shuffle_i64x2(g0, g1, 0x44), g23_low = _mm512_shuffle_i64x2(g2, g3, 0x44);
  const __m512i g01_high = _mm512_shuffle_i64x2(g0, g1, 0xee), g23_high = _mm512_shuffle_i64x2(g2, g3, 0xee);
  _mm512_storeu_si512(out, _mm512_shuffle_i64x2(g01_low, g23_low, 0x88));
  _mm512_storeu_si512(out + 16, _mm512_shuffle_i64x2(g01_low, g23_low, 0xdd));
  _mm512_storeu_si512(out + 32, _mm512_shuffle_i64x2(g01_high, g23_high, 0x88));
  _mm512_storeu_si512(out + 48, _mm512_shuffle_i64x2(g01_high, g23_high, 0xdd));
}

/// Groups (a ^ b, a ^ c, a, a ^ b ^ c) of `count` words; also the sums alone, unless null.
void write_groups(const uint32_t* a, const uint32_t* b, const uint32_t* c, size_t count, uint32_t* groups,
                  uint32_t* sums) {
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m512i va = _mm512_loadu_si512(a + i), vb = _mm512_loadu_si512(b + i),
                  vc = _mm512_loadu_si512(c + i);
    const __m512i ab = _mm512_xor_si512(va, vb), sum = _mm512_xor_si512(ab, vc);
    interleave(ab, _mm512_xor_si512(va, vc), va, sum, groups + i * kForms);
    if (sums != nullptr) _mm512_storeu_si512(sums + i, sum);
  }
  for (; i < count; ++i) {
    uint32_t* group = groups + i * kForms;
    group[0] = a[i] ^ b[i];
    group[1] = a[i] ^ c[i];
    group[2] = a[i];
    group[3] = a[i] ^ b[i] ^ c[i];
    if (sums != nullptr) sums[i] = group[3];
  }
}

void prepare_input(const ConvShape& s, const uint32_t* input, void* scratch, int row_begin, int row_end) {
  const RowForms forms(s);
  const size_t words_in = words(s.in_c);
  const int width = touched_columns(s);
  const int left = s.pad_left;
  const int inside = width - left < s.in_w ? width - left : s.in_w;
  const uint32_t padding = s.pad_value == 1 ? 0xffffffffu : 0;
  // Columns outside the map: a = b = c = padding.
  const uint32_t outside[kForms] = {0, 0, padding, padding};
  for (int y = row_begin; y < row_end; ++y) {
    uint32_t* const row = (uint32_t*)scratch + y * forms.row_words;
    for (int x = 0; x < width; ++x) {
      if (x == left) x += inside;
      for (size_t i = x * words_in; x < width && i < (x + 1) * words_in; ++i) {
        __builtin_memcpy(row + forms.columns + i * kForms, outside, sizeof(outside));
        row[forms.sums + i] = padding;
      }
    }
    const uint32_t* taps[3];
    for (int ky = 0; ky < 3; ++ky) {
      const int in_y = y - s.pad_top + ky;
      taps[ky] = in_y >= 0 && in_y < s.in_h ? input + (size_t)in_y * s.in_w * words_in : nullptr;
    }
    uint32_t* const groups = row + forms.columns + left * words_in * kForms;
    uint32_t* const sums = row + forms.sums + left * words_in;
    const size_t count = inside * words_in;
    if (taps[0] != nullptr && taps[1] != nullptr && taps[2] != nullptr) {
      write_groups(taps[0], taps[1], taps[2], count, groups, sums);
    } else {
      for (size_t i = 0; i < count; ++i) {
        uint32_t word[3];
        for (int ky = 0; ky < 3; ++ky) word[ky] = taps[ky] != nullptr ? taps[ky][i] : padding;
        write_groups(word, word + 1, word + 2, 1, groups + i * kForms, sums + i);
      }
    }
    const uint32_t* const column_sums = row + forms.sums;
    write_groups(column_sums, column_sums + words_in, column_sums + 2 * words_in, s.out_w * words_in,
                 row + forms.windows, nullptr);
  }
}

template <int kPixels>
using Counts = __m512i[kPixels][kVectors];

/// Adds the carries of `steps` groups per pixel to the counts; moves `weights` on.
template <int kPixels>
PHONEBIT_INLINE void count_carries(const uint32_t* const (&groups)[kPixels], long steps,
                                   const uint32_t*& weights, Counts<kPixels>& counts) {
  for (long i = 0; i < steps * kForms; i += kForms, weights += 3 * kLaneChannels) {
    __m512i w[3][kVectors];
    unroll<3>([&](int f) PHONEBIT_LAMBDA_INLINE {
      unroll<kVectors>([&](int q) PHONEBIT_LAMBDA_INLINE {
        w[f][q] = _mm512_load_si512(weights + f * kLaneChannels + 16 * q);
      });
    });
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
      const __m512i ab = _mm512_set1_epi32((int)groups[p][i]);
      const __m512i ac = _mm512_set1_epi32((int)groups[p][i + 1]);
      const __m512i a = _mm512_set1_epi32((int)groups[p][i + 2]);
      unroll<kVectors>([&](int q) PHONEBIT_LAMBDA_INLINE {
        __m512i carry = _mm512_xor_si512(ab, w[0][q]);
        carry = _mm512_ternarylogic_epi32(carry, ac, w[1][q], 0x60);  // carry & (ac ^ w)
        carry = _mm512_ternarylogic_epi32(carry, a, w[2][q], 0x96);   // carry ^ a ^ w
        counts[p][q] = _mm512_add_epi32(counts[p][q], _mm512_popcnt_epi32(carry));
      });
    });
  }
}

template <int kPixels>
PHONEBIT_INLINE void count_sums(const uint32_t* const (&groups)[kPixels], long steps, const uint32_t* weights,
                                Counts<kPixels>& counts) {
  for (long i = 0; i < steps * kForms; i += kForms, weights += kLaneChannels) {
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
      const __m512i sum = _mm512_set1_epi32((int)groups[p][i + 3]);
      unroll<kVectors>([&](int q) PHONEBIT_LAMBDA_INLINE {
        const __m512i different = _mm512_xor_si512(sum, _mm512_load_si512(weights + 16 * q));
        counts[p][q] = _mm512_add_epi32(counts[p][q], _mm512_popcnt_epi32(different));
      });
    });
  }
}

/// counts = 2 counts + d. A tile's windows are addresses of column groups; the window groups of the same
/// pixel lie `windows` words on, less the columns that one row of windows has fewer.
template <int kPixels>
PHONEBIT_INLINE void count_tile(long words_in, const uint32_t* const (&tile_windows)[kPixels], size_t windows,
                                const uint32_t* weights, Counts<kPixels>& counts) {
  // The three columns of a window lie next to each other.
  count_carries(tile_windows, 3 * words_in, weights, counts);
  const uint32_t* window_groups[kPixels];
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { window_groups[p] = tile_windows[p] + windows; });
  count_carries(window_groups, words_in, weights, counts);
  make_double(counts);
  count_sums(window_groups, words_in, weights, counts);
}

/// Each of them has its own copy of the epilogue: a call costs 5 % on a 7x7 map of 512 channels.
template <int kPixels, bool kPlanes>
__attribute__((flatten)) PHONEBIT_NOINLINE void run_block(const ConvShape& s, const PackedLayer& layer,
                                                          const WindowMap& map, int block,
                                                          const OutputRange& range,
                                                          const AccumulatorSink& sink,
                                                          const HighPlane& plane) {
  const size_t windows = RowForms(s).windows;
  const int channels = block_channels(s, block);
  const uint32_t* head = layer.block_head(block);
  const uint32_t* high_head = kPlanes ? plane.block_head(s, block) : nullptr;
  const uint32_t* weights = (const uint32_t*)layer.weights + 2 * block * half_block_words(s);
  alignas(64) float values[kPixels][kChannelBlock];
  PixelTile<kPixels> tile;
  PixelWalk walk(s, map, layer.borders, range.pixel_begin, range.pixel_end);
  WeightsAhead ahead(weights, 2 * half_block_words(s) * sizeof(uint32_t), block + 1 == range.block_end,
                     walk.tiles<kPixels>());
  while (walk.next(tile)) {
    ahead.ask();
    for (int lane = 0; lane < channels; lane += kLaneChannels) {
      const uint32_t* const lane_weights = weights + lane / kLaneChannels * half_block_words(s);
      Counts<kPixels> counts;
      clear(counts);
      if constexpr (kPlanes) {  // d0 + 2 d1: the second plane first
        const uint32_t* high[kPixels];
        unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { high[p] = tile.windows[p] + plane.step; });
        count_tile(words(s.in_c), high, windows, lane_weights, counts);
      }
      count_tile(words(s.in_c), tile.windows, windows, lane_weights, counts);
      finish_tile(s, tile, counts, head, block, lane, sink, values, high_head);
    }
    if (sink.threshold_bits == nullptr) {
      apply_epilogue(*sink.epilogue, values[0], tile.first, tile.count, block * kChannelBlock, channels);
    }
  }
}

/// Whether tiles of 8 pixels suit a range better than those of 7: rows are multiples of 8 and not of 7, or
/// fewer pixels are computed.
bool suits_eight(const ConvShape& s, const OutputRange& range) {
  const int pixels = range.pixel_end - range.pixel_begin;
  return s.out_w % 7 != 0 && (s.out_w % 8 == 0 || (pixels + 7) / 8 * 8 < (pixels + 6) / 7 * 7);
}

template <bool kPlanes>
void run_blocks(const ConvShape& s, const void* packed, const void* scratch, const OutputRange& range,
                const AccumulatorSink& sink, const HighPlane& plane) {
  const PackedLayer layer(s, packed);
  const WindowMap map = {(const uint32_t*)scratch, RowForms(s).row_words, (size_t)words(s.in_c) * kForms, 1};
  const bool by_eight = suits_eight(s, range);
  for (int block = range.block_begin; block < range.block_end; ++block) {
    (by_eight ? run_block<8, kPlanes> : run_block<7, kPlanes>)(s, layer, map, block, range, sink, plane);
  }
}

void run(const ConvShape& s, const void* packed, const uint32_t*, const void* scratch,
         const OutputRange& range, const AccumulatorSink& sink) {
  run_blocks<false>(s, packed, scratch, range, sink, {});
}

void run_planes(const ConvShape& s, const void* const* packed, const uint32_t* const*, const void* scratch,
                const OutputRange& range, const Epilogue& epilogue) {
  run_blocks<true>(s, packed[0], scratch, range, {nullptr, 0, &epilogue},
                   HighPlane::of(packed, scratch, (const char*)scratch + scratch_bytes(s)));
}

constexpr BinaryPlanesKernel kPlanesKernel = {saves_carries, nullptr, run_planes};

}  // namespace

extern const BinaryConvKernel kCarrySaveConv_avx512 = {"bconv2d_3x3_carry_save__avx512vpopcnt",
                                                       packed_bytes,
                                                       pack_weights,
                                                       scratch_bytes,
                                                       prepare_rows,
                                                       prepare_input,
                                                       run,
                                                       &kPlanesKernel};

}  // namespace phonebit::engine::cpu
