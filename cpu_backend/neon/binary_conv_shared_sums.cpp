// @kernel   bconv2d_b32__neonsharedsums   binary convolution, threshold or epilogue fused
// @math     d = T + |w| - 2 A, with T = sum of the window's bits, A = sum of those where the filter's is 1;
//           acc = base_M - 2 d (border_classes.inl)
// @in       packed bits [H][W][words(Cin)]; a padded copy in scratch where a window reaches over the edge
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [Cout/64][group of 3 to 6 filters][lists of positions]
// @source   own; lanes as pixels, full adders after Harley and Seal
//
// Lanes are 128 pixels, one bit each: a plane holds them for one position (tap and channel) of the window. A
// group of F filters shares sums. The bits that they have at a position are one of 2^F patterns; all
// positions of a pattern are added once, and the sum goes to those filters whose bit is 1. So a position
// costs one full adder - two EOR and one BSL - for 128 F MAC, where the counting kernel needs EOR, CNT and
// ADD for 128. Sums are binary numbers, one plane per digit.
//
// What else it costs: planes of a tile, made once for all filters; adding the patterns' sums; sums from
// planes to 16-bit lanes. Every list of positions sweeps the planes, so these must stay in the first cache:
// byte k of a plane has pixel k of eight runs, and the taps of a row are the same bytes from another one on
// (shared_planes.h). Lists of positions are 2 to 5 times as large as the filters' bits.
#include "finish_counts.h"
#include "select.h"
#include "shared.h"
#include "shared_lists.h"
#include "simd/neon.h"

namespace phonebit::engine::cpu {
namespace {

#include "portable/padded_map.inl"

constexpr int kTilePixels = kSharedTilePixels;
constexpr int kMaxDigits = 14, kMaxGroups = (kChannelBlock + 2) / 3;
static_assert(kTilePixels == 128 && kMaxNeonPositions < 1 << kMaxDigits);

using Plane = uint8x16_t;  // pixel k of run i is bit i of byte k; of a half, runs have 8 pixels
using Sum = Plane[16];     // one per digit; the last ones are 0

PHONEBIT_INLINE Plane select(uint8_t mask, Plane a, Plane b) { return vbslq_u8(vdupq_n_u8(mask), a, b); }

/// The steps of transpose_bits for planes and bits whose numbers differ in their lower two digits.
template <int kPlanes>
PHONEBIT_INLINE void transpose_nibbles(Plane (&v)[8]) {
  unroll<kPlanes / 2>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    constexpr int kAt = i / 2 * 4 + i % 2;
    const Plane a = v[kAt], b = v[kAt + 2];
    v[kAt] = select(0x33, a, vshlq_n_u8(b, 2));
    v[kAt + 2] = select(0x33, vshrq_n_u8(a, 2), b);
  });
  unroll<kPlanes / 2>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    constexpr int kAt = i * 2;
    const Plane a = v[kAt], b = v[kAt + 1];
    v[kAt] = select(0x55, a, vshlq_n_u8(b, 1));
    v[kAt + 1] = select(0x55, vshrq_n_u8(a, 1), b);
  });
}

/// Bit i of byte k of v[j] is bit j of byte k of the former v[i].
PHONEBIT_INLINE void transpose_bits(Plane (&v)[8]) {
  unroll<4>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    const Plane a = v[i], b = v[i + 4];
    v[i] = vsliq_n_u8(a, b, 4);
    v[i + 4] = vsriq_n_u8(b, a, 4);
  });
  transpose_nibbles<8>(v);
}

/// The same where the former v[4] to v[7] are 0.
PHONEBIT_INLINE void transpose_low_bits(Plane (&v)[8]) {
  transpose_nibbles<4>(v);
  unroll<4>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    v[i + 4] = vshrq_n_u8(v[i], 4);
    v[i] = vandq_u8(v[i], vdupq_n_u8(15));
  });
}

/// Pixels one after the other, and the input words of their windows; beyond them those of the taps of a row.
struct Run {
  int pixel, count;
  const uint32_t* words[2 * kTilePixels / kRuns];
};

/// The planes of some runs, and one of zeros.
PHONEBIT_NOINLINE void make_planes(const ConvShape& s, const SharedPlanes& form, const WindowMap& map,
                                   const Run* runs, int count, uint8_t* planes) {
  for (int tap = 0; tap < s.kernel_h * s.kernel_w; tap += form.reach > 0 ? s.kernel_w : 1) {
    const size_t from =
        tap / s.kernel_w * s.dilation_h * map.row_stride + tap % s.kernel_w * s.dilation_w * map.pixel_stride;
    for (int w = 0; w < words(s.in_c); ++w, planes += 32 * form.plane_bytes) {
      for (int shift = 0;; shift = form.reach) {
        alignas(16) uint32_t column[kRuns][kTilePixels / kRuns];
        for (int i = 0; i < count; ++i) {
          const uint32_t* const* const words = runs[i].words + shift;
          for (int half = 0; half < form.run_pixels; half += 8) {
            uint32_t eight[8];  // so that none of the loads waits for a store
            unroll<8>([&](auto k) PHONEBIT_LAMBDA_INLINE { eight[k] = words[half + k][from + w]; });
            unroll<8>([&](auto k) PHONEBIT_LAMBDA_INLINE { column[i][half + k] = eight[k]; });
          }
        }
        Plane parts[4][8];
        unroll<8>([&](auto i) PHONEBIT_LAMBDA_INLINE {
          const uint8x16x4_t four = vld4q_u8((const uint8_t*)column[i]);
          unroll<4>([&](auto j) PHONEBIT_LAMBDA_INLINE { parts[j][i] = four.val[j]; });
        });
        uint8_t* to = planes + shift;
        unroll<4>([&](auto j) PHONEBIT_LAMBDA_INLINE {
          transpose_bits(parts[j]);
          unroll<8>([&](auto i) PHONEBIT_LAMBDA_INLINE {
            if (form.has_halves()) {
              vst1_u8(to, vget_low_u8(parts[j][i]));
            } else {
              vst1q_u8(to, parts[j][i]);
            }
            to += form.plane_bytes;
          });
        });
        if (shift == form.reach) break;
      }
    }
  }
  vst1q_u8(planes, vdupq_n_u8(0));
}

#include "shared_units.inl"

/// Adds to the sums of a group's filters, after them T if the list has it. Returns the next list.
PHONEBIT_NOINLINE const uint16_t* sum_group(const uint8_t* planes, const uint16_t* list, bool has_halves,
                                            int digits, Sum* sums) {
  const Plane zero = vdupq_n_u8(0);
  Plane s1 = zero, s2 = zero, s4 = zero, s8 = zero, s16 = zero, s32 = zero, s64 = zero, s128 = zero;
  while (const int head = *list++) {
    if (const int units = head & kMaxUnits; units > 0) {
      if (has_halves) {
        sum_units<true>(planes, list, units, s1, s2, s4, s8, s16, s32, s64, s128);
      } else {
        sum_units<false>(planes, list, units, s1, s2, s4, s8, s16, s32, s64, s128);
      }
    }
    unsigned targets = (unsigned)head >> kFirstFilter;  // at least one
    if (head & kFirst) {
      const Sum total = {s1, s2, s4, s8, s16, s32, s64, s128};
      unroll<16>([&](auto i) PHONEBIT_LAMBDA_INLINE { sums[__builtin_ctz(targets)][i] = total[i]; });
      targets = 0;
    }
    for (; targets != 0; targets &= targets - 1) {
      Plane* const sum = sums[__builtin_ctz(targets)];
      Plane carry = add_total(sum, s1, s2, s4, s8, s16, s32, s64, s128);
      if (__builtin_expect(digits > kUsualDigits, 0)) {
        for (int i = kUsualDigits; i < digits; ++i) {
          const Plane before = sum[i];
          sum[i] = veorq_u8(before, carry), carry = vandq_u8(before, carry);
        }
      }
    }
    if (head & kEnd) s1 = s2 = s4 = s8 = s16 = s32 = s64 = s128 = zero;
  }
  return list;
}

/// to[i] = the sum's numbers, of pixels 8 i on.
PHONEBIT_INLINE void widen(const Sum& sum, int digits, uint16x8_t* to, bool has_halves) {
  Plane low[8], high[8];
  unroll<8>([&](auto i) PHONEBIT_LAMBDA_INLINE { low[i] = sum[i], high[i] = sum[8 + i]; });
  if (digits <= kUsualDigits) {
    transpose_low_bits(high);
  } else {
    transpose_bits(high);
  }
  transpose_bits(low);
  unroll<8>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    const uint16x8_t first = vreinterpretq_u16_u8(vzip1q_u8(low[i], high[i]));
    const uint16x8_t second = vreinterpretq_u16_u8(vzip2q_u8(low[i], high[i]));
    if (has_halves) {
      to[i] = first + second;
    } else {
      to[2 * i] = first, to[2 * i + 1] = second;
    }
  });
}

PHONEBIT_INLINE uint16x8_t words_of(uint64x2_t v) { return vreinterpretq_u16_u64(v); }
PHONEBIT_INLINE uint32x4_t pairs_of(uint16x8_t v) { return vreinterpretq_u32_u16(v); }
PHONEBIT_INLINE uint64x2_t quads_of(uint32x4_t v) { return vreinterpretq_u64_u32(v); }

using Counts = int16_t[kTilePixels][kChannelBlock];

/// numbers[f][pixel] to counts[pixel][channel + f].
PHONEBIT_NOINLINE void transpose_filters(const uint16x8_t (&numbers)[8][kTilePixels / 8], int count,
                                         int channel, Counts& counts) {
  for (int i = 0; i < (count + 7) / 8; ++i) {
    uint32x4_t two[8];
    uint64x2_t four[8];
    unroll<4>([&](auto f) PHONEBIT_LAMBDA_INLINE {
      const uint16x8_t a = numbers[2 * f][i], b = numbers[2 * f + 1][i];
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

/// Bit c: all - 2 counts[c] is below limits[c], of 64. That is counts[c] > (all - limits[c]) / 2, rounded
/// down.
PHONEBIT_INLINE uint64_t bits_below(int all, const int16_t* counts, const int16_t* limits) {
  const int16x8_t t = vdupq_n_s16((int16_t)all);
  const auto is_below = [&](int c) PHONEBIT_LAMBDA_INLINE {
    return vreinterpretq_u8_u16(vcgtq_s16(vld1q_s16(counts + c), vhsubq_s16(t, vld1q_s16(limits + c))));
  };
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  uint8x16_t set[4];
  for (int q = 0; q < 4; ++q, counts += 16, limits += 16) {
    set[q] = vandq_u8(vuzp1q_u8(is_below(0), is_below(8)), bit);
  }
  const uint8x16_t quarters = vpaddq_u8(vpaddq_u8(set[0], set[1]), vpaddq_u8(set[2], set[3]));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(quarters, quarters)), 0);
}

/// A tile of a block of channels: A of each, and totals[pixel] = kFloatBias + 2 T.
PHONEBIT_NOINLINE void run_block(const SharedPlanes& form, int channels, const uint8_t* planes,
                                 const uint16_t* list, int count, Counts& counts, int32_t* totals) {
  const int digits = 32 - __builtin_clz(form.positions / form.halves());
  Sum sums[kMaxGroups][kMaxFilters + 1];  // of one group at a time, where the window is not cut
  uint16x8_t numbers[8][kTilePixels / 8];
  for (int segment = 1; segment <= form.segments; ++segment) {
    for (int c = 0, group = 0, filters; c < channels; c += filters, group += form.segments > 1) {
      filters = form.filters_from(c, channels);
      list = sum_group(planes, list, form.has_halves(), digits, sums[group]);
      if (segment < form.segments) continue;
      for (int f = c == 0 ? -1 : 0; f < filters; ++f) {
        const int at = (c + f) % 8;
        uint16x8_t* const to = numbers[f < 0 ? 0 : at];
        widen(sums[group][f < 0 ? filters : f], digits, to, form.has_halves());
        if (f < 0) {
          for (int i = 0; i < count; ++i) totals[i] = kFloatBias + 2 * ((const uint16_t*)to)[i];
        } else if (at == 7) {
          transpose_filters(numbers, count, c + f - 7, counts);
        }
      }
    }
  }
}

PHONEBIT_RARE void run(const ConvShape& s, const void* packed, const uint32_t* input, const void* scratch,
                       const OutputRange& range, const AccumulatorSink& sink) {
  const WindowMap map = window_map(s, input, scratch);
  const BorderTable& borders = *(const BorderTable*)packed;
  const int32_t* entries = (const int32_t*)((const char*)packed + border_table_bytes(s));
  const uint16_t* lists = (const uint16_t*)((const char*)packed + neon_entries_bytes(s));
  alignas(64) uint8_t planes[kMaxPlaneBytes + 16];
  alignas(64) Counts counts;
  int32_t totals[kTilePixels];
  const SharedPlanes form(s);
  const int width = form.run_pixels, reach = form.reach;
  for (int pixel = range.pixel_begin; pixel < range.pixel_end;) {
    Run runs[kRuns];
    int used = 0;
    int classes[kRuns][kTilePixels / kRuns];
    for (; used < kRuns && pixel < range.pixel_end; ++used) {
      Run& run = runs[used];
      run = {pixel, 0, {}};
      int y = pixel / s.out_w, x = pixel % s.out_w;
      for (int k = 0; k < width + reach; ++k) {
        // Windows of pixels that are not made repeat the last one.
        run.words[k] = k > 0 ? run.words[k - 1] + map.pixel_stride : nullptr;
        const bool is_made = k < width && pixel < range.pixel_end && (reach == 0 || k == 0 || x != 0);
        if (is_made) {
          run.words[k] =
              map.words + (size_t)y * s.stride_h * map.row_stride + (size_t)x * s.stride_w * map.pixel_stride;
          classes[used][k] = borders.class_of(s, y, x);
          ++pixel, run.count = k + 1;
          if (++x == s.out_w) x = 0, ++y;
        } else if (k >= run.count + reach) {
          run.words[k] = run.words[k - 1];
        }
      }
    }
    make_planes(s, form, map, runs, used, planes);
    for (int block = range.block_begin; block < range.block_end; ++block) {
      const int channels = channels_of(s, block);
      run_block(form, channels, planes, lists + block_entries(s) * block, used * width, counts, totals);
      const int32_t* of_block = entries + (size_t)block * borders.count() * kChannelBlock;
      for (int i = 0; i < used; ++i) {
        const auto of_class = [&](int p) { return of_block + (size_t)classes[i][p] * kChannelBlock; };
        const int16_t (*const of_run)[kChannelBlock] = counts + i * width;
        const int32_t* const all = totals + i * width;
        if (sink.threshold_bits != nullptr) {
          for (int p = 0; p < runs[i].count; ++p) {
            const uint64_t bits = bits_below(all[p] / 2, of_run[p], (const int16_t*)of_class(p));
            uint32_t* const to = sink.threshold_bits + (size_t)(runs[i].pixel + p) * sink.pixel_words +
                                 block * (kChannelBlock / 32);
            *to = (uint32_t)bits;  // of 32 or 64 channels
            if (channels == kChannelBlock) to[1] = (uint32_t)(bits >> 32);
          }
          continue;
        }
        for (int p = 0; p < runs[i].count; p += kFinishedPixels) {
          const int left = runs[i].count - p < kFinishedPixels ? runs[i].count - p : kFinishedPixels;
          const int32_t* bases[kFinishedPixels];
          for (int j = 0; j < left; ++j) bases[j] = of_class(p + j);
          finish_counts(*sink.epilogue, {of_run[p], bases, all + p, -4, runs[i].pixel + p, left},
                        block * kChannelBlock, channels);
        }
      }
    }
  }
}

}  // namespace

extern const BinaryConvKernel kSharedSumsConv_neon = {
    "bconv2d_b32__neonsharedsums", packed_list_bytes, pack_lists, padded_bytes, padded_rows, pad_input, run};

}  // namespace phonebit::engine::cpu
