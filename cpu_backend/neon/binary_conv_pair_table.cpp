// @kernel   bconv2d_b32__neonpairtable   binary convolution, threshold or epilogue fused, any shape
// @math     d = sum over taps and words of popcount(x xor w);  acc = base_M - 2 d (border_classes.inl)
// @in       u16 table offsets, prepared in scratch
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [Cout/64][step of 4 bits][64 x u8]
// @source   own; portable/pair_table.inl has the derivation
//
// What bounds it: three steps of a pair of pixels and 16 channels (384 MAC) take 3 TBL, 3 ADD and 1 USRA: 55
// MAC an operation of 128 bits, where EOR, CNT and ADD give 43. Cores that split a TBL into several
// operations (Cortex-A57 and A72) are better off with CNT: binary_conv_count.cpp.
//
// The loop is written in assembly for the in-order cores, which run it in the order in which it stands: loads
// are spread between operations, and results are used late. The order was found by hill climbing on
// llvm-mca's cycles for Cortex-A53 and A55; benchmarks/cpu_kernels/neon_mca.py shows what it reaches.
#include "binary_conv_kernels.h"
#include "finish_counts.h"
#include "hwcaps.h"
#include "pair_table.h"
#include "portable/intrinsics.h"
#include "shared_epilogue.h"

namespace phonebit::engine::cpu {
namespace {

#include "portable/epilogue.inl"
#include "portable/pair_table.inl"

// clang-format off
// Registers: v0-7 A and v8-15 B of pair 0 and pair 1 (four vectors of 16 channels each), v16-23 t likewise,
// v24-27 the step's weights, v28-29 the tables of the pairs, v30-31 scratch; the last use of a step's weights
// and tables overwrites them. Software pipeline: a loop begins with the sums of its predecessor (t is 0 at
// first), the weights and tables of its first step are there, and so are the indices of the second.
#define LOOK_UP(D, TABLE, W) "tbl v" #D ".16b, {v" #TABLE ".16b}, v" #W ".16b\n"
#define ADD(D, V) "add v" #D ".16b, v" #D ".16b, v" #V ".16b\n"
#define ADD_HIGH(D, V) "usra v" #D ".16b, v" #V ".16b, #4\n"
#define WEIGHTS(W, AT) "ldr q" #W ", [%[weights], #" #AT "]\n"
#define INDEX(PAIR, AT) "ldrh %w[index" #PAIR "], [%[p" #PAIR "], #" #AT "]\n"
#define TABLE(T, PAIR) "ldr q" #T ", [%[table], %[index" #PAIR "]]\n"
#define ZERO(V) "movi v" #V ".16b, #0\n"
// Or, after a window of one chunk: the sums as bytes.
#define KEEP(A, B, AT)                                 \
  "shl v30.16b, v" #B ".16b, #4\n"                     \
  "sub v" #A ".16b, v" #A ".16b, v30.16b\n"            \
  "str q" #A ", [%[sums], #" #AT "]\n"                 \
  "str q" #B ", [%[sums], #" #AT "+64]\n"
// A - 16 B and B, added to 16-bit sums of the pair's two pixels.
#define WIDEN(A, B, AT)                                \
  "shl v30.16b, v" #B ".16b, #4\n"                     \
  "ldp q28, q29, [%[sums], #" #AT "]\n"                \
  "sub v" #A ".16b, v" #A ".16b, v30.16b\n"            \
  "ldp q30, q31, [%[sums], #" #AT "+128]\n"            \
  "uaddw v28.8h, v28.8h, v" #A ".8b\n"                 \
  "uaddw2 v29.8h, v29.8h, v" #A ".16b\n"               \
  "uaddw v30.8h, v30.8h, v" #B ".8b\n"                 \
  "uaddw2 v31.8h, v31.8h, v" #B ".16b\n"               \
  "stp q28, q29, [%[sums], #" #AT "]\n"                \
  "stp q30, q31, [%[sums], #" #AT "+128]\n"

// Step by step: loads are for the next step, indices for the one after it.
#define THREE_STEPS(I, W)                                                                                  \
  ADD(0, 16) ADD_HIGH(10, 18) ADD_HIGH(9, 17) ADD_HIGH(11, 19) ADD(2, 18) ADD(1, 17) ADD(3, 19)            \
  ADD_HIGH(8, 16) ADD_HIGH(13, 21) ADD(4, 20) ADD_HIGH(12, 20) ADD(7, 23) LOOK_UP(20, 29, 24)              \
  ADD_HIGH(14, 22) LOOK_UP(16, 28, 24) LOOK_UP(19, 28, 27) LOOK_UP(18, 28, 26) ADD_HIGH(15, 23) ADD(6, 22) \
  ADD(5, 21) WEIGHTS(24, W + 64) LOOK_UP(17, 28, 25) TABLE(28, 0) LOOK_UP(23, 29, 27) LOOK_UP(21, 29, 25)  \
  WEIGHTS(25, W + 80) LOOK_UP(22, 29, 26) TABLE(29, 1) LOOK_UP(30, 28, 24) WEIGHTS(26, W + 96)             \
  LOOK_UP(31, 28, 25) WEIGHTS(27, W + 112) LOOK_UP(25, 29, 25) LOOK_UP(24, 29, 24) INDEX(0, I + 4)         \
  ADD(16, 30) LOOK_UP(30, 28, 26) LOOK_UP(28, 28, 27) LOOK_UP(27, 29, 27) LOOK_UP(26, 29, 26) ADD(21, 25)  \
  INDEX(1, I + 4) ADD(20, 24) ADD(19, 28) TABLE(28, 0) WEIGHTS(24, W + 128) ADD(18, 30) ADD(22, 26)        \
  WEIGHTS(25, W + 144) ADD(23, 27) TABLE(29, 1) LOOK_UP(30, 28, 24) WEIGHTS(26, W + 160) ADD(17, 31)       \
  WEIGHTS(27, W + 176) LOOK_UP(31, 28, 25) LOOK_UP(24, 29, 24) LOOK_UP(25, 29, 25) ADD(16, 30)             \
  LOOK_UP(30, 28, 26) LOOK_UP(28, 28, 27) LOOK_UP(26, 29, 26) INDEX(1, I + 6) ADD(17, 31) INDEX(0, I + 6)  \
  ADD(20, 24) WEIGHTS(24, W + 192) ADD(19, 28) ADD(21, 25) TABLE(28, 0) LOOK_UP(27, 29, 27) TABLE(29, 1)   \
  ADD(18, 30) INDEX(0, I + 8) ADD(22, 26) INDEX(1, I + 8) ADD(23, 27) WEIGHTS(27, W + 240)                 \
  WEIGHTS(25, W + 208) WEIGHTS(26, W + 224)

#define TWO_PAIRS(BEGIN, END, FINISH)                                                                        \
  int64_t i, index0, index1;                                                                                 \
  const uint16_t *p0, *p1;                                                                                   \
  asm volatile(                                                                                              \
      WEIGHTS(24, 0) WEIGHTS(25, 16) WEIGHTS(26, 32) WEIGHTS(27, 48)                                         \
      "1:\n"                                                                                                 \
      ZERO(0) ZERO(1) ZERO(2) ZERO(3) ZERO(4) ZERO(5) ZERO(6) ZERO(7)                                        \
      ZERO(8) ZERO(9) ZERO(10) ZERO(11) ZERO(12) ZERO(13) ZERO(14) ZERO(15)                                  \
      ZERO(16) ZERO(17) ZERO(18) ZERO(19) ZERO(20) ZERO(21) ZERO(22) ZERO(23)                                \
      "2:\n"                                                                                                 \
      "ldr %[index0], [%[segment]]\n"                                                                        \
      "ldrsw %[i], [%[segment], #8]\n"                                                                       \
      "add %[index0], %[index0], %[i]\n"                                                                     \
      "add %[p0], %[window0], %[index0]\n"                                                                   \
      "add %[p1], %[window1], %[index0]\n"                                                                   \
      INDEX(0, 0) INDEX(1, 0) TABLE(28, 0) TABLE(29, 1) INDEX(0, 2) INDEX(1, 2)                              \
      BEGIN                                                                                                  \
      "3:\n"                                                                                                 \
      THREE_STEPS(0, 0)                                                                                      \
      "adds %[i], %[i], #12\n"                                                                               \
      THREE_STEPS(6, 192)                                                                                    \
      "add %[p0], %[p0], #12\n"                                                                              \
      "add %[p1], %[p1], #12\n"                                                                              \
      "add %[weights], %[weights], #384\n"                                                                   \
      "b.ne 3b\n"                                                                                            \
      END                                                                                                    \
      "ldr %w[index0], [%[segment], #12]\n"                                                                  \
      "add %[segment], %[segment], #16\n"                                                                    \
      "cbz %w[index0], 2b\n"                                                                                 \
      ADD(0, 16) ADD(1, 17) ADD(2, 18) ADD(3, 19) ADD(4, 20) ADD(5, 21) ADD(6, 22) ADD(7, 23)                \
      ADD_HIGH(8, 16) ADD_HIGH(9, 17) ADD_HIGH(10, 18) ADD_HIGH(11, 19)                                      \
      ADD_HIGH(12, 20) ADD_HIGH(13, 21) ADD_HIGH(14, 22) ADD_HIGH(15, 23)                                    \
      FINISH                                                                                                 \
      "cmp %[segment], %[end]\n"                                                                             \
      "b.ne 1b\n"                                                                                            \
      : [weights] "+&r"(weights), [segment] "+&r"(segment), [i] "=&r"(i), [p0] "=&r"(p0), [p1] "=&r"(p1),    \
        [index0] "=&r"(index0), [index1] "=&r"(index1)                                                       \
      : [window0] "r"(window0), [window1] "r"(window1), [end] "r"(end), [sums] "r"(sums),                    \
        [table] "r"(kPairTable.rows)                                                                         \
      : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",            \
        "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",           \
        "v25", "v26", "v27", "v28", "v29", "v30", "v31");                                                    \
  return weights

// benchmarks/cpu_kernels/neon_mca.py reads the loop between these comments.
const uint8_t* two_pairs(const uint16_t* window0, const uint16_t* window1, const uint8_t* weights,
                         const Segment* segment, const Segment* end, uint16_t* sums) {
  TWO_PAIRS("// begin pair_table 6144 MAC\n", "// end pair_table\n",
            WIDEN(0, 8, 0) WIDEN(1, 9, 32) WIDEN(2, 10, 64) WIDEN(3, 11, 96)
            WIDEN(4, 12, 256) WIDEN(5, 13, 288) WIDEN(6, 14, 320) WIDEN(7, 15, 352));
}

const uint8_t* two_pairs(const uint16_t* window0, const uint16_t* window1, const uint8_t* weights,
                         const Segment* segment, const Segment* end, uint8_t* sums) {
  TWO_PAIRS("", "", KEEP(0, 8, 0) KEEP(1, 9, 16) KEEP(2, 10, 32) KEEP(3, 11, 48)
                    KEEP(4, 12, 128) KEEP(5, 13, 144) KEEP(6, 14, 160) KEEP(7, 15, 176));
}
// clang-format on

PHONEBIT_INLINE void finish_pair(const uint8x16_t (&low)[4], const uint8x16_t (&high)[4], uint16_t* sums) {
  for (int q = 0; q < 4; ++q) {
    const uint8x16_t fields[2] = {low[q], high[q]};
    for (int p = 0; p < 2; ++p) {
      uint16_t* to = sums + p * kChannelBlock + 16 * q;
      vst1q_u16(to, vaddw_u8(vld1q_u16(to), vget_low_u8(fields[p])));
      vst1q_u16(to + 8, vaddw_high_u8(vld1q_u16(to + 8), fields[p]));
    }
  }
}

PHONEBIT_INLINE void finish_pair(const uint8x16_t (&low)[4], const uint8x16_t (&high)[4], uint8_t* sums) {
  for (int q = 0; q < 4; ++q) {
    vst1q_u8(sums + 16 * q, low[q]);
    vst1q_u8(sums + kChannelBlock + 16 * q, high[q]);
  }
}

/// The last one or two pixels of a range: a plain loop will do.
template <class Sum>
const uint8_t* one_pair(const uint16_t* window, const uint8_t* weights, const Segment* segment,
                        const Segment* end, Sum* sums) {
  while (segment != end) {
    uint8x16_t a[4] = {}, b[4] = {};
    do {
      const uint16_t* p = window + (segment->end_offset + segment->minus_bytes) / 2;
      for (int i = segment->minus_bytes; i != 0; i += 6, p += 3) {
        uint8x16_t t[4] = {};
        for (int step = 0; step < 3; ++step, weights += kChannelBlock) {
          const uint8x16_t table = vld1q_u8(kPairTable.rows[0] + p[step]);
          for (int q = 0; q < 4; ++q) t[q] = vaddq_u8(t[q], vqtbl1q_u8(table, vld1q_u8(weights + 16 * q)));
        }
        for (int q = 0; q < 4; ++q) {
          a[q] = vaddq_u8(a[q], t[q]);
          b[q] = vsraq_n_u8(b[q], t[q], 4);
        }
      }
    } while ((segment++)->after == kGoOn);
    for (int q = 0; q < 4; ++q) a[q] = vsubq_u8(a[q], vshlq_n_u8(b[q], 4));
    finish_pair(a, b, sums);
  }
  return weights;
}

/// Bits of 64 lanes that are all ones or zeros: pairwise additions gather 8 lanes into a byte each.
PHONEBIT_INLINE uint64_t gather_bits(const uint8x16_t (&lanes)[4]) {
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  uint8x16_t set[4];
  for (int q = 0; q < 4; ++q) set[q] = vandq_u8(lanes[q], bit);
  const uint8x16_t quarters = vpaddq_u8(vpaddq_u8(set[0], set[1]), vpaddq_u8(set[2], set[3]));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(quarters, quarters)), 0);
}

struct Neon {
  static constexpr int32_t kBaseBias = cpu::kBaseBias;
  static constexpr int short_slot(int lane) { return lane; }
  static int count(const uint16_t* sums, int lane) { return (uint16_t)(sums[lane] - ShortSums::kBias); }

  template <class Sums>
  static const uint8_t* accumulate(const PairTile& tile, const uint8_t* weights, const Segment* begin,
                                   const Segment* end, Sums& sums) {
    if (tile.count > 2) return two_pairs(tile.windows[0], tile.windows[2], weights, begin, end, sums.lanes);
    return one_pair(tile.windows[0], weights, begin, end, sums.lanes);
  }

  static uint64_t bits(const ShortSums& sums, int pixel, const int32_t* entries) {
    const int16_t *d = (const int16_t*)(sums.lanes + pixel * kChannelBlock),
                  *limits = (const int16_t*)entries;
    uint8x16_t below[4];
    for (int q = 0; q < 4; ++q, d += 16, limits += 16) {
      const uint16x8_t low = vcltq_s16(vld1q_s16(d), vld1q_s16(limits));
      const uint16x8_t high = vcltq_s16(vld1q_s16(d + 8), vld1q_s16(limits + 8));
      below[q] = vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
    }
    return gather_bits(below);
  }

  static uint64_t bits(const ByteSums& sums, int pixel, const int32_t* entries) {
    uint8x16_t below[4];
    for (int q = 0; q < 4; ++q) {
      const uint8x16_t d = veorq_u8(vld1q_u8(sums.lanes + pixel * kChannelBlock + 16 * q), vdupq_n_u8(0x80));
      below[q] = vcltq_s8(vreinterpretq_s8_u8(d), vld1q_s8((const int8_t*)entries + 16 * q));
    }
    return gather_bits(below);
  }

  static void finish(const ShortSums& sums, const PairTile& tile, const int32_t* const* bases,
                     const BlockSink& sink) {
    finish_counts(*sink.sink.epilogue, {(const int16_t*)sums.lanes, bases, tile.first, tile.count},
                  sink.block * kChannelBlock, sink.channels);
  }

  static void finish(const ByteSums& sums, const PairTile& tile, const int32_t* const* bases,
                     const BlockSink& sink) {
    ShortSums wide;
    for (int i = 0; i < kTilePixels * kChannelBlock; ++i) wide.lanes[i] = sums.lanes[i] + ShortSums::kBias;
    finish(wide, tile, bases, sink);
  }

  /// Bytes of two pixels to 2 table offsets each: low nibbles of both side by side, then high nibbles,
  /// interleaved.
  static void expand(const uint32_t* first, const uint32_t* second, int words_in, uint16_t* out) {
    int w = 0;
    for (; w + 4 <= words_in; w += 4) {
      const uint8x16_t a = vreinterpretq_u8_u32(vld1q_u32(first + w));
      const uint8x16_t b = vreinterpretq_u8_u32(vld1q_u32(second + w));
      const uint8x16_t low = vsliq_n_u8(a, b, 4), high = vsriq_n_u8(b, a, 4);
      const uint8x16_t bytes[2] = {vzip1q_u8(low, high), vzip2q_u8(low, high)};
      for (int i = 0; i < 2; ++i) {
        vst1q_u16(out + 8 * w + 16 * i, vshll_n_u8(vget_low_u8(bytes[i]), 4));
        vst1q_u16(out + 8 * w + 16 * i + 8, vshll_high_n_u8(bytes[i], 4));
      }
    }
    for (; w < words_in; ++w) expand_word(first[w], second[w], out + 8 * w);
  }
};

/// False on Cortex-A57 and A72, which split a TBL of 128 bits into three operations: a whole pass of QuickNet takes
/// 60 million cycles of an A72 with tables and 52 with counting (executed blocks, by llvm-mca). Linux lets programs
/// read the identification of the core they run on.
bool looks_up_fast() {
#if defined(__linux__)
  if (!PHONEBIT_HAS_HWCAP(AT_HWCAP, HWCAP_CPUID, "")) return true;
  uint64_t midr;
  asm("mrs %0, MIDR_EL1" : "=r"(midr));
  const unsigned implementer = midr >> 24 & 0xff, part = midr >> 4 & 0xfff;
  return !(implementer == 0x41 && (part == 0xd07 || part == 0xd08));
#else
  return true;
#endif
}

bool supports(const ConvShape& s) { return has_several_pixels(s) && looks_up_fast(); }

}  // namespace

extern const BinaryConvKernel kPairTableConv_neon =
    pair_table_kernel<Neon>("bconv2d_b32__neonpairtable", supports);

}  // namespace phonebit::engine::cpu
