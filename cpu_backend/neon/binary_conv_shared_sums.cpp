// @kernel   bconv2d_b32__neonsharedsums   binary convolution, threshold or epilogue fused
// @math     d = T + |w| - 2 A with T = sum of the window's bits, A = sum of those where the filter's bit is 1
// @in       packed bits [H][W][words(Cin)]; a padded copy in scratch where a window reaches over the edge
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [Cout/64][group of 3 to 6 filters][lists of positions]
// @source   own; lanes as pixels, full adders after Harley and Seal
//
// Lanes are 128 pixels, one bit each: a plane holds them for one position (tap and channel) of the window. A group of F
// filters shares sums. The bits that they have at a position are one of 2^F patterns; all positions of a pattern are
// added once, and the sum goes to those filters whose bit is 1. So a position costs one full adder - two EOR and one
// BSL - for 128 F MAC, where the counting kernel takes EOR, CNT and ADD for 128. Sums are binary numbers, a plane a
// digit.
//
// What it takes besides: planes of a tile, made once for all filters; adding the patterns' sums; sums from planes to
// 16-bit lanes. Lists of positions are 2 to 5 times as large as the filters' bits.
#include "binary_conv_kernels.h"
#include "finish_counts.h"
#include "portable/intrinsics.h"
#include "shared_entries.h"
#include "shared_epilogue.h"

namespace phonebit::engine::cpu {
namespace {

#include "portable/padded_map.inl"
#include "portable/simd.inl"

constexpr int kTilePixels = kSharedSumsPixels;
constexpr int kMostFilters = 6;
constexpr int kUnit = 16, kMostUnits = 15;  // a chunk of a list: its sum has 8 digits
constexpr int kChunk = kUnit * kMostUnits, kDigits = 8;
constexpr int kMostDigits = 14;
static_assert(kTilePixels == 128 && kMostSharedPositions < 1 << kMostDigits);

using Plane = uint8x16_t;  // pixel 16 i + k is bit i of byte k; of a half, 8 i + k
using Sum = Plane[kMostDigits];

int positions(const ConvShape& s) { return s.kernel_h * s.kernel_w * words(s.in_c) * 32; }
int block_count(const ConvShape& s) { return s.out_c / kChannelBlock; }

/// Maps of up to 64 pixels have planes of 64 bits, two of them in a register, each with its own sums.
bool has_halves(const ConvShape& s) { return s.out_h * s.out_w <= kTilePixels / 2; }
int halves(const ConvShape& s) { return has_halves(s) ? 2 : 1; }

/// How many filters share sums: the longer the windows, the more patterns pay.
int group_filters(const ConvShape& s) {
  return positions(s) < 1000 ? 3 : positions(s) < 2000 ? 4 : positions(s) < 4000 ? 5 : 6;
}
int filters_from(const ConvShape& s, int channel) {
  const int left = kChannelBlock - channel % kChannelBlock;
  return left < group_filters(s) ? left : group_filters(s);
}
int group_count(const ConvShape& s) { return (kChannelBlock + group_filters(s) - 1) / group_filters(s); }

/// Of the lists of a block: with a head and up to 15 zeros for each pattern, a head for each chunk, 0 behind a group.
size_t block_entries(const ConvShape& s) {
  const int patterns = 1 << group_filters(s);
  return (size_t)group_count(s) *
         (positions(s) + (halves(s) * kUnit + 1) * patterns + 2 * (positions(s) / kChunk) + 1);
}

/// Packed: [shared_entries.h][lists]. A list is parts of chunks, each [head][positions], and 0. Head: how many units of
/// positions; whether the chunk ends; and, bit by bit, to which filters its sum up to there goes, T being the last.
constexpr int kEnd = 1 << 4, kFirstFilter = 5;

size_t packed_bytes(const ConvShape& s) {
  return neon_entries_bytes(s) +
         sizeof(uint16_t) * (block_entries(s) * block_count(s) + 16);  // loops read ahead
}

PHONEBIT_INLINE int filter_bit(const uint32_t* filter, int position) {
  return filter[position / 32] >> (position % 32) & 1;
}

/// Lists positions into chunks.
struct ListWriter {
  uint16_t* out;
  int padding;  // a position without bits
  int halves;
  int in_chunk = 0, length = 0;  // positions of the chunk so far, and of the open part

  void put(int position, int targets_if_full) {
    if (in_chunk + length == halves * kChunk) end(targets_if_full, true);
    if (length++ == 0) ++out;
    *out++ = (uint16_t)position;
  }
  void end(int targets, bool ends_chunk) {
    if (in_chunk + length == 0) return;
    if (length == 0) ++out;
    for (; length % (halves * kUnit) != 0; ++length) *out++ = (uint16_t)padding;
    out[-1 - length] =
        (uint16_t)(length / (halves * kUnit) | (ends_chunk ? kEnd : 0) | targets << kFirstFilter);
    in_chunk = ends_chunk ? 0 : in_chunk + length;
    length = 0;
  }
};

/// The list of some filters; T's with it. The last filter's patterns come before those that differ from them by its bit
/// only, and are summed on with these: so the others need one addition for both.
PHONEBIT_RARE uint16_t* pack_group(const uint32_t* filters, int filter_count, int count, int halves,
                                   bool sums_all, uint16_t* out) {
  ListWriter list = {out, count, halves};
  uint8_t own[kMostSharedPositions] = {};  // patterns of the positions
  for (int i = 0; i < count; ++i)
    for (int f = 0; f < filter_count; ++f) own[i] |= filter_bit(filters + f * (count / 32), i) << f;
  const int last = 1 << (filter_count - 1), all = sums_all ? 2 * last : 0;
  for (int pattern = 0; pattern < last; ++pattern) {
    const int targets = pattern | all;
    for (int bit = last; bit >= 0; bit -= last) {
      if (targets == 0 && bit == 0) continue;
      for (int i = 0; i < count; ++i)
        if (own[i] == (pattern | bit)) list.put(i, targets | bit);
      list.end(bit != 0 ? last : targets, bit == 0 || targets == 0);
    }
  }
  int used = 0;
  for (int i = 0; i < count; ++i) used |= own[i];
  for (int f = 0; f < filter_count; ++f)  // a filter without ones has a sum, too
    if (!(used >> f & 1)) *list.out++ = (uint16_t)(kEnd | 1 << (kFirstFilter + f));
  *list.out++ = 0;
  return list.out;
}

PHONEBIT_RARE void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                                void* packed) {
  neon_pack_entries(s, weights, thresholds, true, packed);
  const int count = positions(s);
  const int classes = ((const BorderTable*)packed)->count();
  int32_t* entries = (int32_t*)((char*)packed + border_table_bytes(s));
  for (int c = 0; c < s.out_c; ++c) {
    int ones = 0;
    for (int i = 0; i < count; ++i) ones += filter_bit(weights + (size_t)c * (count / 32), i);
    // What is compared, or goes to the epilogue, is d - ones, and not from -2^15 on.
    for (int i = 0; i < classes; ++i) {
      int32_t* of_class = entries + ((size_t)c / kChannelBlock * classes + i) * kChannelBlock;
      const int lane = c % kChannelBlock;
      if (thresholds == nullptr) {
        of_class[lane] += 65536 - 2 * ones;
      } else {
        const int limit = ((uint16_t*)of_class)[lane];
        ((int16_t*)of_class)[lane] = (int16_t)((limit < count + 1 ? limit : count + 1) - ones);
      }
    }
  }
  uint16_t* lists = (uint16_t*)((char*)packed + neon_entries_bytes(s));
  for (int block = 0; block < block_count(s); ++block, lists += block_entries(s)) {
    uint16_t* out = lists;
    for (int c = 0, filters; c < kChannelBlock; c += filters, weights += (size_t)filters * (count / 32)) {
      filters = filters_from(s, c);
      out = pack_group(weights, filters, count, halves(s), c == 0, out);
    }
  }
}

PHONEBIT_INLINE Plane select(uint8_t mask, Plane a, Plane b) { return vbslq_u8(vdupq_n_u8(mask), a, b); }

/// Bit i of byte k of v[j] is bit j of byte k of the former v[i].
PHONEBIT_INLINE void transpose_bits(Plane (&v)[8]) {
  unroll<4>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    const Plane a = v[i], b = v[i + 4];
    v[i] = vsliq_n_u8(a, b, 4);
    v[i + 4] = vsriq_n_u8(b, a, 4);
  });
  unroll<4>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    constexpr int kAt = i / 2 * 4 + i % 2;
    const Plane a = v[kAt], b = v[kAt + 2];
    v[kAt] = select(0x33, a, vshlq_n_u8(b, 2));
    v[kAt + 2] = select(0x33, vshrq_n_u8(a, 2), b);
  });
  unroll<4>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    constexpr int kAt = i * 2;
    const Plane a = v[kAt], b = v[kAt + 1];
    v[kAt] = select(0x55, a, vshlq_n_u8(b, 1));
    v[kAt + 1] = select(0x55, vshrq_n_u8(a, 1), b);
  });
}

/// The planes of a tile of some 16 pixels, and one of zeros.
PHONEBIT_NOINLINE void make_planes(const ConvShape& s, const WindowMap& map, const uint32_t* const* windows,
                                   int pixels, uint8_t* planes) {
  const int skipped = has_halves(s) ? ~7 : 0, step = 16 / halves(s);
  for (int ky = 0; ky < s.kernel_h; ++ky) {
    for (int kx = 0; kx < s.kernel_w; ++kx) {
      const size_t tap = ky * s.dilation_h * map.row_stride + kx * s.dilation_w * map.pixel_stride;
      for (int w = 0; w < words(s.in_c); w += 2) {
        const int has_two = w + 1 < words(s.in_c);
        alignas(16) uint32_t columns[2][kTilePixels];
#pragma GCC unroll 8
        for (int p = 0; p < pixels; ++p) {
          const uint32_t* from = windows[p] + tap + w;
          const int place = p + (p & skipped);  // of 16 places in a row 8 are used
          columns[0][place] = from[0], columns[1][place] = from[has_two];
        }
        for (int i = 0; i <= has_two; ++i) {
          const uint32_t* const column = columns[i];
          Plane bytes[4][8];
          unroll<8>([&](auto i) PHONEBIT_LAMBDA_INLINE {
            const uint8x16x4_t four = vld4q_u8((const uint8_t*)(column + 16 * i));
            unroll<4>([&](auto j) PHONEBIT_LAMBDA_INLINE { bytes[j][i] = four.val[j]; });
          });
          unroll<4>([&](auto j) PHONEBIT_LAMBDA_INLINE {
            transpose_bits(bytes[j]);
            unroll<8>([&](auto i) PHONEBIT_LAMBDA_INLINE {
              vst1q_u8(planes, bytes[j][i]);
              planes += step;  // the next one covers what is beyond
            });
          });
        }
      }
    }
  }
  vst1q_u8(planes, vdupq_n_u8(0));
}

/// sum + a + b = the new sum + 2 carries.
PHONEBIT_INLINE Plane add(Plane& sum, Plane a, Plane b) {
  const Plane either = veorq_u8(sum, a), carry = vbslq_u8(either, b, a);
  sum = veorq_u8(either, b);
  return carry;
}

PHONEBIT_INLINE Plane add(Plane& sum, Plane a) {
  const Plane carry = vandq_u8(sum, a);
  sum = veorq_u8(sum, a);
  return carry;
}

/// sum += digits, of `count` digits.
PHONEBIT_INLINE void add(Sum& sum, const Plane (&digits)[kDigits], int count) {
  Plane carry = add(sum[0], digits[0]);
  unroll<kDigits - 1>([&](auto i) PHONEBIT_LAMBDA_INLINE { carry = add(sum[i + 1], digits[i + 1], carry); });
  for (int i = kDigits; i < count; ++i) carry = add(sum[i], carry);
}

/// Adds units of 16 positions to a sum of eight digits, or of 16 in either half. In assembly for the in-order cores,
/// which run it as it stands; the order was found by hill climbing on llvm-mca's cycles for Cortex-A53. Software
/// pipeline: a unit's last carries are added with the next unit.
template <bool kHalves>
PHONEBIT_INLINE void sum_units(const uint8_t* planes, const uint16_t* list, int64_t units, Plane& s1,
                               Plane& s2, Plane& s4, Plane& s8, Plane& s16, Plane& s32, Plane& s64,
                               Plane& s128) {
  // clang-format off
// v0-15 planes of positions and, in their place, carries; v26-27 carries; i0-7 positions.
#define LOAD(V, I) "ldr q" #V ", [%[planes], %[i" #I "], lsl #4]\n"
#define PLACE(I, AT) "ldrh %w[i" #I "], [%[list], #" #AT "]\n"
// Two of 64 bits.
#define LOAD_TWO(V, I)                         \
  "and %[t], %[i" #I "], #0xffff\n"           \
  "lsr %[i" #I "], %[i" #I "], #16\n"         \
  "ldr d" #V ", [%[planes], %[t], lsl #3]\n"  \
  "add %[t], %[planes], %[i" #I "], lsl #3\n" \
  "ld1 {v" #V ".d}[1], [%[t]]\n"
#define PLACES(I, AT) "ldr %w[i" #I "], [%[list], #2*" #AT "]\n"
#define E(D, A, B) "eor " D ".16b, " A ".16b, " B ".16b\n"
#define A(D, A, B) "and " D ".16b, " A ".16b, " B ".16b\n"
#define B(D, A, B) "bit " D ".16b, " A ".16b, " B ".16b\n"
#define SUM(L, I, BYTES, BEGIN, END) \
  asm volatile( \
      "movi v6.16b, #0\n" "movi v8.16b, #0\n" "movi v10.16b, #0\n" "movi v12.16b, #0\n" "movi v14.16b, #0\n" \
      I(0, 0) I(1, 2) I(2, 4) I(3, 6) I(4, 8) I(5, 10) I(6, 12) I(7, 14) \
      "1:\n" BEGIN \
      L(1, 1) I(1, 18) E("v8", "v10", "v8") L(0, 0) L(2, 2) L(9, 1) I(0, 16) I(2, 20) L(3, 3) L(5, 5) \
      B("v10", "%[s2]", "v8") E("v1", "v0", "v1") E("v12", "v14", "v12") E("%[s2]", "%[s2]", "v8") L(4, 4) \
      L(7, 7) E("v3", "v2", "v3") B("v0", "%[s1]", "v1") E("%[s1]", "%[s1]", "v1") I(1, 34) \
      B("v14", "%[s2]", "v12") I(7, 30) I(3, 22) E("v5", "v4", "v5") L(8, 0) B("v2", "%[s1]", "v3") \
      E("v10", "v14", "v10") I(5, 26) E("%[s1]", "%[s1]", "v3") I(4, 24) L(15, 7) B("v14", "%[s4]", "v10") \
      E("%[s2]", "%[s2]", "v12") L(13, 5) E("v0", "v2", "v0") I(7, 46) B("v4", "%[s1]", "v5") \
      E("v6", "v14", "v6") I(0, 32) E("%[s4]", "%[s4]", "v10") E("v9", "v8", "v9") L(12, 4) L(11, 3) \
      B("v14", "%[s8]", "v6") E("%[s8]", "%[s8]", "v6") L(6, 6) I(6, 28) L(10, 2) E("%[s1]", "%[s1]", "v5") \
      I(5, 42) E("v7", "v6", "v7") I(3, 38) I(2, 36) B("v2", "%[s2]", "v0") E("v11", "v10", "v11") \
      B("v6", "%[s1]", "v7") E("%[s1]", "%[s1]", "v7") E("%[s2]", "%[s2]", "v0") A("v26", "%[s16]", "v14") \
      E("%[s16]", "%[s16]", "v14") E("v4", "v6", "v4") B("v8", "%[s1]", "v9") E("%[s1]", "%[s1]", "v9") \
      A("v27", "%[s32]", "v26") E("v13", "v12", "v13") L(14, 6) B("v6", "%[s2]", "v4") \
      E("%[s32]", "%[s32]", "v26") B("v10", "%[s1]", "v11") E("%[s1]", "%[s1]", "v11") I(6, 44) \
      A("v26", "%[s64]", "v27") E("v2", "v6", "v2") E("v15", "v14", "v15") I(4, 40) B("v12", "%[s1]", "v13") \
      E("%[s1]", "%[s1]", "v13") E("%[s128]", "%[s128]", "v26") B("v6", "%[s4]", "v2") \
      E("%[s64]", "%[s64]", "v27") E("%[s4]", "%[s4]", "v2") E("%[s2]", "%[s2]", "v4") B("v14", "%[s1]", "v15") \
      E("%[s1]", "%[s1]", "v15") \
      "subs %w[units], %w[units], #1\n" \
      "add %[list], %[list], #" #BYTES "\n" \
      END "b.ne 1b\n" \
      E("v8", "v10", "v8") B("v10", "%[s2]", "v8") E("%[s2]", "%[s2]", "v8") E("v12", "v14", "v12") \
      B("v14", "%[s2]", "v12") E("%[s2]", "%[s2]", "v12") E("v10", "v14", "v10") B("v14", "%[s4]", "v10") \
      E("%[s4]", "%[s4]", "v10") E("v6", "v14", "v6") B("v14", "%[s8]", "v6") E("%[s8]", "%[s8]", "v6") \
      A("v26", "%[s16]", "v14") E("%[s16]", "%[s16]", "v14") A("v27", "%[s32]", "v26") \
      E("%[s32]", "%[s32]", "v26") A("v26", "%[s64]", "v27") E("%[s64]", "%[s64]", "v27") \
      E("%[s128]", "%[s128]", "v26") \
      : [list] "+&r"(list), [units] "+&r"(units), [s1] "+&w"(s1), [s2] "+&w"(s2), [s4] "+&w"(s4), [s8] "+&w"(s8), \
        [s16] "+&w"(s16), [s32] "+&w"(s32), [s64] "+&w"(s64), [s128] "+&w"(s128), [i0] "=&r"(i0), [i1] "=&r"(i1), \
        [i2] "=&r"(i2), [i3] "=&r"(i3), [i4] "=&r"(i4), [i5] "=&r"(i5), [i6] "=&r"(i6), [i7] "=&r"(i7), [t] "=&r"(t) \
      : [planes] "r"(planes) \
      : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
        "v15", "v26", "v27")
  int64_t i0, i1, i2, i3, i4, i5, i6, i7, t;
  if constexpr (kHalves) {
    SUM(LOAD_TWO, PLACES, 64, "", "");
  } else {
    SUM(LOAD, PLACE, 32, "// begin shared_sums 8192 MAC\n", "// end shared_sums\n");
  }
#undef SUM
#undef LOAD
#undef PLACE
#undef LOAD_TWO
#undef PLACES
#undef E
#undef A
#undef B
  // clang-format on
}

/// Sums of a group's filters, then T if the list has it. Returns the next group's list.
template <bool kHalves>
PHONEBIT_NOINLINE const uint16_t* sum_group(const uint8_t* planes, const uint16_t* list, int digits,
                                            Sum (&sums)[kMostFilters + 1]) {
  const Plane zero = vdupq_n_u8(0);
  Plane s1 = zero, s2 = zero, s4 = zero, s8 = zero, s16 = zero, s32 = zero, s64 = zero, s128 = zero;
  int begun = 0;  // which sums have been written
  while (const int head = *list++) {
    if (const int units = head & kMostUnits; units > 0) {
      sum_units<kHalves>(planes, list, units, s1, s2, s4, s8, s16, s32, s64, s128);
      list += (kHalves ? 2 : 1) * kUnit * units;
    }
    const Plane total[kDigits] = {s1, s2, s4, s8, s16, s32, s64, s128};
    const int targets = head >> kFirstFilter;
    for (int f = 0; targets >> f != 0; ++f) {
      if (!(targets >> f & 1)) continue;
      if (begun >> f & 1) {
        add(sums[f], total, digits);
        continue;
      }
      unroll<kDigits>([&](auto i) PHONEBIT_LAMBDA_INLINE { sums[f][i] = total[i]; });
      for (int i = kDigits; i < kMostDigits; ++i) sums[f][i] = zero;
    }
    begun |= targets;
    if (head & kEnd) s1 = s2 = s4 = s8 = s16 = s32 = s64 = s128 = zero;
  }
  return list;
}

/// Twice the sum, or the sum, of pixels 8 i on in to[i].
template <bool kTwice>
PHONEBIT_INLINE void widen(const Sum& sum, uint16x8_t (&to)[kTilePixels / 8], bool has_halves) {
  constexpr int kLow = kTwice ? 7 : 8;
  Plane low[8], high[8];
  unroll<8>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    constexpr int kFrom = i - (kTwice ? 1 : 0);
    low[i] = kFrom < 0 ? vdupq_n_u8(0) : sum[kFrom < 0 ? 0 : kFrom];
    high[i] = kLow + i < kMostDigits ? sum[kLow + i < kMostDigits ? kLow + i : 0] : vdupq_n_u8(0);
  });
  transpose_bits(low);
  transpose_bits(high);
  unroll<8>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    const uint16x8_t first = vreinterpretq_u16_u8(vzip1q_u8(low[i], high[i]));
    const uint16x8_t second = vreinterpretq_u16_u8(vzip2q_u8(low[i], high[i]));
    if (has_halves) {
      to[i] = vaddq_u16(first, second);
    } else {
      to[2 * i] = first, to[2 * i + 1] = second;
    }
  });
}

PHONEBIT_INLINE uint16x8_t words_of(uint64x2_t v) { return vreinterpretq_u16_u64(v); }
PHONEBIT_INLINE uint32x4_t pairs_of(uint16x8_t v) { return vreinterpretq_u32_u16(v); }
PHONEBIT_INLINE uint64x2_t quads_of(uint32x4_t v) { return vreinterpretq_u64_u32(v); }

using Counts = int16_t[kTilePixels][kChannelBlock];

/// differences[f][pixel] to counts[pixel][channel + f].
PHONEBIT_NOINLINE void transpose_filters(const uint16x8_t (&differences)[8][kTilePixels / 8], int count,
                                         int channel, Counts& counts) {
  for (int i = 0; i < (count + 7) / 8; ++i) {
    uint32x4_t two[8];
    uint64x2_t four[8];
    unroll<4>([&](auto f) PHONEBIT_LAMBDA_INLINE {
      const uint16x8_t a = differences[2 * f][i], b = differences[2 * f + 1][i];
      two[2 * f] = pairs_of(vtrn1q_u16(a, b)), two[2 * f + 1] = pairs_of(vtrn2q_u16(a, b));
    });
    unroll<4>([&](auto j) PHONEBIT_LAMBDA_INLINE {
      constexpr int kAt = j / 2 * 4 + j % 2;
      four[kAt] = quads_of(vtrn1q_u32(two[kAt], two[kAt + 2]));
      four[kAt + 2] = quads_of(vtrn2q_u32(two[kAt], two[kAt + 2]));
    });
    unroll<4>([&](auto j) PHONEBIT_LAMBDA_INLINE {
      int16_t* to = counts[8 * i + j] + channel;
      vst1q_u16((uint16_t*)to, words_of(vtrn1q_u64(four[j], four[j + 4])));
      vst1q_u16((uint16_t*)to + 4 * kChannelBlock, words_of(vtrn2q_u64(four[j], four[j + 4])));
    });
  }
}

/// Bit c: count c is below limits[c], of 64.
PHONEBIT_INLINE uint64_t bits_below(const int16_t* counts, const int16_t* limits) {
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  uint8x16_t set[4];
  for (int q = 0; q < 4; ++q, counts += 16, limits += 16) {
    const uint16x8_t low = vcltq_s16(vld1q_s16(counts), vld1q_s16(limits));
    const uint16x8_t high = vcltq_s16(vld1q_s16(counts + 8), vld1q_s16(limits + 8));
    set[q] = vandq_u8(vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high)), bit);
  }
  const uint8x16_t quarters = vpaddq_u8(vpaddq_u8(set[0], set[1]), vpaddq_u8(set[2], set[3]));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(quarters, quarters)), 0);
}

/// A tile of a block of channels.
PHONEBIT_NOINLINE void run_block(const ConvShape& s, const uint8_t* planes, const uint16_t* list, int count,
                                 Counts& counts) {
  const int digits = 32 - __builtin_clz(positions(s));
  const int vectors = kTilePixels / 8 / halves(s);
  uint16x8_t all[kTilePixels / 8];  // T
  uint16x8_t differences[8][kTilePixels / 8];
  for (int c = 0; c < kChannelBlock;) {
    Sum sums[kMostFilters + 1];
    const int filters = filters_from(s, c);
    list = (has_halves(s) ? sum_group<true> : sum_group<false>)(planes, list, digits, sums);
    if (c == 0) widen<false>(sums[filters], all, has_halves(s));
    for (int f = 0; f < filters; ++f) {
      uint16x8_t(&to)[kTilePixels / 8] = differences[c % 8];
      uint16x8_t twice[kTilePixels / 8];
      widen<true>(sums[f], twice, has_halves(s));
      for (int half = 0; half < vectors; half += 8)
        unroll<8>([&](auto i)
                      PHONEBIT_LAMBDA_INLINE { to[half + i] = vsubq_u16(all[half + i], twice[half + i]); });
      if (++c % 8 == 0) transpose_filters(differences, count, c - 8, counts);
    }
  }
}

PHONEBIT_RARE void run(const ConvShape& s, const void* packed, const uint32_t* input, const void* scratch,
                       const OutputRange& range, const AccumulatorSink& sink) {
  const WindowMap map = window_map(s, input, scratch);
  const BorderTable& borders = *(const BorderTable*)packed;
  const int32_t* entries = (const int32_t*)((const char*)packed + border_table_bytes(s));
  const uint16_t* lists = (const uint16_t*)((const char*)packed + neon_entries_bytes(s));
  alignas(64) uint8_t planes[16 * (kMostSharedPositions + 1)];
  alignas(64) Counts counts;
  const uint32_t* windows[kTilePixels];
  int classes[kTilePixels];
  int y = range.pixel_begin / s.out_w, x = range.pixel_begin % s.out_w;
  for (int first = range.pixel_begin; first < range.pixel_end; first += kTilePixels) {
    const int count = range.pixel_end - first < kTilePixels ? range.pixel_end - first : kTilePixels;
    for (int p = 0; p < kTilePixels; ++p) {
      windows[p] =
          map.words + (size_t)y * s.stride_h * map.row_stride + (size_t)x * s.stride_w * map.pixel_stride;
      classes[p] = borders.class_of(s, y, x);
      // A pixel beyond the range repeats the last one and is not written.
      if (first + p + 1 < range.pixel_end && ++x == s.out_w) x = 0, ++y;
    }
    make_planes(s, map, windows, (count + 15) / 16 * 16, planes);
    for (int block = range.block_begin; block < range.block_end; ++block) {
      run_block(s, planes, lists + block_entries(s) * block, count, counts);
      const int32_t* of_block = entries + (size_t)block * borders.count() * kChannelBlock;
      const auto of_class = [&](int p) { return of_block + (size_t)classes[p] * kChannelBlock; };
      if (sink.threshold_bits != nullptr) {
        for (int p = 0; p < count; ++p) {
          const uint64_t bits = bits_below(counts[p], (const int16_t*)of_class(p));
          __builtin_memcpy(
              sink.threshold_bits + (size_t)(first + p) * sink.pixel_words + block * (kChannelBlock / 32),
              &bits, sizeof bits);
        }
        continue;
      }
      for (int p = 0; p < count; p += kFinishedPixels) {
        const int left = count - p < kFinishedPixels ? count - p : kFinishedPixels;
        const int32_t* bases[kFinishedPixels];
        for (int i = 0; i < left; ++i) bases[i] = of_class(p + i);
        finish_counts(*sink.epilogue, {counts[p], bases, first + p, left}, block * kChannelBlock,
                      kChannelBlock);
      }
    }
  }
}

}  // namespace

extern const BinaryConvKernel kSharedSumsConv_neon = {"bconv2d_b32__neonsharedsums",
                                                      shares_sums,
                                                      packed_bytes,
                                                      pack_weights,
                                                      padded_bytes,
                                                      padded_rows,
                                                      pad_input,
                                                      kTilePixels,
                                                      run};

}  // namespace phonebit::engine::cpu
