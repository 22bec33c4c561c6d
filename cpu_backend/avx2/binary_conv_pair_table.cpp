// @kernel   bconv2d_b32__avx2pairtable   binary convolution, threshold or epilogue fused, any shape
// @math     d = sum over taps and words of popcount(x xor w);  acc = base_M - 2 d (border_classes.inl)
// @in       u16 table offsets, prepared in scratch
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [Cout/64][step of 4 bits][64 x u8]
// @source   own; avx2/pair_table.inl has the derivation
//
// What bounds it: three steps of a pair of pixels and 64 channels (1536 MAC) take 6 shuffles, 8 additions, 2
// ands and 2 shifts. On three vector ports (Intel since Haswell) that is 256 MAC a cycle, on four (Zen) 341;
// xor and a table of popcounts for one pixel would end at 96 and 128, a table of (i ^ a) for one pixel at 192
// and 256. Where one port shuffles (Haswell to Skylake), its 6 shuffles allow 256 as well.
//
// The loop is written in assembly because it needs all 16 registers: gcc 12 spills from the same loop in
// intrinsics, which then reaches 175 MAC a cycle where this one reaches 208 (Golden Cove, 64 channels).
#include "pair_table.h"
#include "select.h"
#include "simd/avx2.h"

namespace phonebit::engine::cpu {
namespace {

#include "pair_planes.inl"

alignas(32) constexpr uint8_t kHighNibbles[32] = {
    0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0,
    0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0, 0xf0};

// clang-format off
// Registers: ymm0-3 t of pair 0 and pair 1 (two vectors of 32 channels each), ymm4-7 A, ymm8-11 B, ymm12-13
// the step's weights, ymm14 the table, ymm15 scratch. A is added as 16-bit lanes: a wrapping low byte then
// carries into the high one, and A - 16 B in 16 bits gives both sums of L without a mask.
#define ZERO(R) "vpxor %%xmm" #R ", %%xmm" #R ", %%xmm" #R "\n"
#define STEP_WEIGHTS(STEP)                            \
  "vmovdqa 64*" #STEP "(%[weights]), %%ymm12\n"       \
  "vmovdqa 64*" #STEP "+32(%[weights]), %%ymm13\n"
#define TABLE(STEP, PAIR)                             \
  "movzwl 2*" #STEP "(%[" PAIR "], %[i]), %%eax\n"    \
  "vbroadcasti128 (%[table], %%rax), %%ymm14\n"
#define FIRST(STEP, PAIR, T0, T1)                     \
  TABLE(STEP, PAIR)                                   \
  "vpshufb %%ymm12, %%ymm14, %%ymm" #T0 "\n"          \
  "vpshufb %%ymm13, %%ymm14, %%ymm" #T1 "\n"
#define NEXT(STEP, PAIR, T0, T1)                      \
  TABLE(STEP, PAIR)                                   \
  "vpshufb %%ymm12, %%ymm14, %%ymm15\n"               \
  "vpshufb %%ymm13, %%ymm14, %%ymm14\n"               \
  "vpaddb %%ymm15, %%ymm" #T0 ", %%ymm" #T0 "\n"      \
  "vpaddb %%ymm14, %%ymm" #T1 ", %%ymm" #T1 "\n"
#define SPLIT(T, A, B)                                \
  "vpaddw %%ymm" #T ", %%ymm" #A ", %%ymm" #A "\n"    \
  "vpand %[high], %%ymm" #T ", %%ymm" #T "\n"         \
  "vpsrlw $4, %%ymm" #T ", %%ymm" #T "\n"             \
  "vpaddb %%ymm" #T ", %%ymm" #B ", %%ymm" #B "\n"
// 16-bit sums of even and odd bytes: total += v, odd += v >> 8; the even sum is total - 256 odd.
#define ADD_TO(V, SHIFTED, AT)                                  \
  "vpsrlw $8, %%ymm" #V ", %%ymm" #SHIFTED "\n"                 \
  "vpaddw " #AT "(%[sums]), %%ymm" #V ", %%ymm" #V "\n"         \
  "vpaddw " #AT "+32(%[sums]), %%ymm" #SHIFTED ", %%ymm" #SHIFTED "\n" \
  "vmovdqa %%ymm" #V ", " #AT "(%[sums])\n"                     \
  "vmovdqa %%ymm" #SHIFTED ", " #AT "+32(%[sums])\n"
#define WIDEN(A, B, AT)                               \
  "vpsllw $4, %%ymm" #B ", %%ymm14\n"                 \
  "vpsubw %%ymm14, %%ymm" #A ", %%ymm" #A "\n"        \
  ADD_TO(A, 15, AT)                                   \
  ADD_TO(B, 13, AT + 128)
// Or, after a window of one chunk: the sums as bytes.
#define KEEP(A, B, AT)                                \
  "vpsllw $4, %%ymm" #B ", %%ymm14\n"                 \
  "vpsubw %%ymm14, %%ymm" #A ", %%ymm" #A "\n"        \
  "vmovdqa %%ymm" #A ", " #AT "(%[sums])\n"           \
  "vmovdqa %%ymm" #B ", " #AT "+64(%[sums])\n"
// Around the steps: segments that are not widened after keep their sums in registers.
#define BEGIN_SEGMENT(PAIR, WINDOW) "lea (%[" WINDOW "], %%rax), %[" PAIR "]\n"
#define NEXT_SEGMENT                                  \
  "add $16, %[segment]\n"                             \
  "cmpl $0, -4(%[segment])\n"                         \
  "je 2b\n"
#define NEXT_CHUNK                                    \
  "cmp %[end], %[segment]\n"                          \
  "jne 1b\n"
#define CLOBBERED                                                                                            \
  "rax", "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
      "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

#define THREE_STEPS_TWO(S0, S1, S2)                                                    \
  STEP_WEIGHTS(S0) FIRST(S0, "p0", 0, 1) FIRST(S0, "p1", 2, 3)                         \
  STEP_WEIGHTS(S1) NEXT(S1, "p0", 0, 1) NEXT(S1, "p1", 2, 3)                           \
  STEP_WEIGHTS(S2) NEXT(S2, "p0", 0, 1) NEXT(S2, "p1", 2, 3)                           \
  SPLIT(0, 4, 8) SPLIT(1, 5, 9) SPLIT(2, 6, 10) SPLIT(3, 7, 11)
#define THREE_STEPS_ONE(S0, S1, S2)                                                    \
  STEP_WEIGHTS(S0) FIRST(S0, "p0", 0, 1)                                               \
  STEP_WEIGHTS(S1) NEXT(S1, "p0", 0, 1)                                                \
  STEP_WEIGHTS(S2) NEXT(S2, "p0", 0, 1)                                                \
  SPLIT(0, 4, 8) SPLIT(1, 5, 9)

#define TWO_PAIRS(FINISH)                                                                                    \
  int64_t i;                                                                                                 \
  const uint16_t *p0, *p1;                                                                                   \
  asm volatile(                                                                                              \
      "1:\n"                                                                                                 \
      ZERO(4) ZERO(5) ZERO(6) ZERO(7) ZERO(8) ZERO(9) ZERO(10) ZERO(11)                                      \
      "2:\n"                                                                                                 \
      "mov (%[segment]), %%rax\n"                                                                            \
      "movslq 8(%[segment]), %[i]\n"                                                                         \
      BEGIN_SEGMENT("p0", "window0") BEGIN_SEGMENT("p1", "window1")                                          \
      ".p2align 5\n"                                                                                         \
      "3:\n"                                                                                                 \
      THREE_STEPS_TWO(0, 1, 2) THREE_STEPS_TWO(3, 4, 5)                                                      \
      "add $6*64, %[weights]\n"                                                                              \
      "add $6*2, %[i]\n"                                                                                     \
      "jnz 3b\n"                                                                                             \
      NEXT_SEGMENT                                                                                           \
      FINISH                                                                                                 \
      NEXT_CHUNK                                                                                             \
      : [weights] "+r"(weights), [segment] "+r"(segment), [i] "=&r"(i), [p0] "=&r"(p0), [p1] "=&r"(p1)       \
      : [window0] "r"(window0), [window1] "r"(window1), [end] "r"(end), [sums] "r"(sums),                    \
        [table] "r"(kPairTable.rows), [high] "m"(kHighNibbles)                                               \
      : CLOBBERED);                                                                                          \
  return weights

const uint8_t* two_pairs(const uint16_t* window0, const uint16_t* window1, const uint8_t* weights,
                         const Segment* segment, const Segment* end, uint16_t* sums) {
  TWO_PAIRS(WIDEN(4, 8, 0) WIDEN(5, 9, 64) WIDEN(6, 10, 256) WIDEN(7, 11, 320));
}

const uint8_t* two_pairs(const uint16_t* window0, const uint16_t* window1, const uint8_t* weights,
                         const Segment* segment, const Segment* end, uint8_t* sums) {
  TWO_PAIRS(KEEP(4, 8, 0) KEEP(5, 9, 32) KEEP(6, 10, 128) KEEP(7, 11, 160));
}

const uint8_t* one_pair(const uint16_t* window, const uint8_t* weights, const Segment* segment,
                        const Segment* end, uint16_t* sums) {
  int64_t i;
  const uint16_t* p0;
  asm volatile(
      "1:\n"
      ZERO(4) ZERO(5) ZERO(8) ZERO(9)
      "2:\n"
      "mov (%[segment]), %%rax\n"
      "movslq 8(%[segment]), %[i]\n"
      BEGIN_SEGMENT("p0", "window0")
      ".p2align 5\n"
      "3:\n"
      THREE_STEPS_ONE(0, 1, 2) THREE_STEPS_ONE(3, 4, 5)
      "add $6*64, %[weights]\n"
      "add $6*2, %[i]\n"
      "jnz 3b\n"
      NEXT_SEGMENT
      WIDEN(4, 8, 0) WIDEN(5, 9, 64)
      NEXT_CHUNK
      : [weights] "+r"(weights), [segment] "+r"(segment), [i] "=&r"(i), [p0] "=&r"(p0)
      : [window0] "r"(window), [end] "r"(end), [sums] "r"(sums), [table] "r"(kPairTable.rows),
        [high] "m"(kHighNibbles)
      : CLOBBERED);
  return weights;
}

// Two planes (avx2/pair_planes.inl): ymm0-7 the sums of four pixels, as bytes.
#define PLANES_STEP(STEP)                                                              \
  STEP_WEIGHTS(STEP) NEXT(STEP, "p0", 0, 1) NEXT(STEP, "p1", 2, 3) NEXT(STEP, "p2", 4, 5) NEXT(STEP, "p3", 6, 7)
#define PLANES_WINDOW(P)                                                               \
  "mov 8*" #P "(%[windows]), %[p" #P "]\n"                                             \
  "add %%rax, %[p" #P "]\n"
#define PLANES_WIDEN(V0, V1, AT) ADD_TO(V0, 14, AT) ADD_TO(V1, 15, AT + 64)

void four_pixels(const uint16_t* const* windows, const uint8_t* weights, const Segment* segment,
                 const Segment* end, uint16_t* sums) {
  int64_t i, units;
  const uint16_t *p0, *p1, *p2, *p3;
  asm volatile(
      "1:\n"
      "mov (%[segment]), %%rax\n"
      "movslq 8(%[segment]), %[i]\n"
      PLANES_WINDOW(0) PLANES_WINDOW(1) PLANES_WINDOW(2) PLANES_WINDOW(3)
      "2:\n"
      ZERO(0) ZERO(1) ZERO(2) ZERO(3) ZERO(4) ZERO(5) ZERO(6) ZERO(7)
      "mov %[max], %[units]\n"
      ".p2align 5\n"
      "3:\n"
      PLANES_STEP(0) PLANES_STEP(1) PLANES_STEP(2) PLANES_STEP(3) PLANES_STEP(4) PLANES_STEP(5)
      "add $6*64, %[weights]\n"
      "add $6*2, %[i]\n"
      "jz 4f\n"
      "dec %[units]\n"
      "jnz 3b\n"
      "4:\n"
      PLANES_WIDEN(0, 1, 0) PLANES_WIDEN(2, 3, 128) PLANES_WIDEN(4, 5, 256) PLANES_WIDEN(6, 7, 384)
      "test %[i], %[i]\n"
      "jnz 2b\n"
      "add $16, %[segment]\n"
      "cmp %[end], %[segment]\n"
      "jne 1b\n"
      : [weights] "+r"(weights), [segment] "+r"(segment), [i] "=&r"(i), [units] "=&r"(units), [p0] "=&r"(p0),
        [p1] "=&r"(p1), [p2] "=&r"(p2), [p3] "=&r"(p3)
      : [windows] "r"(windows), [end] "r"(end), [sums] "r"(sums), [table] "r"(kPlanesTable.rows),
        [max] "i"(kPlanesSteps / kRunSteps)
      : CLOBBERED);
}
// clang-format on

/// 32 channels of one pixel: sums of the even and the odd ones, biased.
struct EvenOdd {
  __m256i even, odd;

  EvenOdd(const ShortSums& sums, int pixel, int half) {
    const __m256i* from = (const __m256i*)(sums.lanes + pixel * kChannelBlock + 32 * half);
    odd = _mm256_load_si256(from + 1);
    even = _mm256_sub_epi16(_mm256_load_si256(from), _mm256_slli_epi16(odd, 8));
  }
};

/// base - 2 d of 8 channels.
PHONEBIT_INLINE void store_values(__m256i d, const int32_t* bases, float* values) {
  const __m256i base = _mm256_load_si256((const __m256i*)bases);
  _mm256_store_ps(values, _mm256_cvtepi32_ps(_mm256_sub_epi32(base, _mm256_add_epi32(d, d))));
}

struct Avx2 {
  static constexpr int32_t kBaseBias = 0;
  /// Order of 16-bit sums: per 32 channels the even ones, then the odd ones.
  static constexpr int short_slot(int lane) { return lane / 32 * 32 + lane % 2 * 16 + lane % 32 / 2; }

  /// Stored is even + 256 odd for the even lanes (EvenOdd).
  static int count(const uint16_t* sums, int lane) {
    const int slot = short_slot(lane);
    const int sum = lane % 2 == 1 ? sums[slot] : sums[slot] - (sums[slot + 16] << 8);
    return (uint16_t)(sum - ShortSums::kBias);
  }

  static const uint8_t* accumulate(const PairTile& tile, const uint8_t* weights, const Segment* begin,
                                   const Segment* end, ShortSums& sums) {
    if (tile.count > 2) return two_pairs(tile.windows[0], tile.windows[2], weights, begin, end, sums.lanes);
    return one_pair(tile.windows[0], weights, begin, end, sums.lanes);
  }

  static const uint8_t* accumulate(const PairTile& tile, const uint8_t* weights, const Segment* begin,
                                   const Segment* end, ByteSums& sums) {
    // A last pair fills the tile twice: so short a window does not deserve a loop for one pair.
    return two_pairs(tile.windows[0], tile.windows[tile.count > 2 ? 2 : 0], weights, begin, end, sums.lanes);
  }

  static void accumulate_planes(const uint16_t* const* windows, const uint8_t* weights, const Segment* begin,
                                const Segment* end, uint16_t* sums) {
    four_pixels(windows, weights, begin, end, sums);
  }

  static uint64_t bits(const ShortSums& sums, int pixel, const int32_t* entries) {
    uint32_t words[2];
    for (int half = 0; half < 2; ++half) {
      const __m256i* limits = (const __m256i*)((const int16_t*)entries + 32 * half);
      const EvenOdd d(sums, pixel, half);
      const __m256i even = _mm256_cmpgt_epi16(_mm256_load_si256(limits), d.even);
      const __m256i odd = _mm256_cmpgt_epi16(_mm256_load_si256(limits + 1), d.odd);
      words[half] = (uint32_t)_mm256_movemask_epi8(_mm256_blendv_epi8(odd, even, _mm256_set1_epi16(0xff)));
    }
    return words[0] | (uint64_t)words[1] << 32;
  }

  static uint64_t bits(const ByteSums& sums, int pixel, const int32_t* entries) {
    uint32_t words[2];
    for (int half = 0; half < 2; ++half) {
      const __m256i d = _mm256_load_si256((const __m256i*)(sums.lanes + pixel * kChannelBlock) + half);
      const __m256i biased = _mm256_xor_si256(d, _mm256_set1_epi8((char)0x80));
      words[half] = (uint32_t)_mm256_movemask_epi8(
          _mm256_cmpgt_epi8(_mm256_load_si256((const __m256i*)entries + half), biased));
    }
    return words[0] | (uint64_t)words[1] << 32;
  }

  static void values(const ShortSums& sums, int pixel, const int32_t* bases, float* out) {
    const __m256i bias = _mm256_set1_epi16((short)ShortSums::kBias);
    for (int half = 0; half < 2; ++half, bases += 32, out += 32) {
      const EvenOdd d(sums, pixel, half);
      const __m256i even = _mm256_xor_si256(d.even, bias), odd = _mm256_xor_si256(d.odd, bias);
      const __m256i low = _mm256_unpacklo_epi16(even, odd), high = _mm256_unpackhi_epi16(even, odd);
      store_values(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(low)), bases, out);
      store_values(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(high)), bases + 8, out + 8);
      store_values(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(low, 1)), bases + 16, out + 16);
      store_values(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(high, 1)), bases + 24, out + 24);
    }
  }

  static void values(const ByteSums& sums, int pixel, const int32_t* bases, float* out) {
    const uint8_t* d = sums.lanes + pixel * kChannelBlock;
    for (int c = 0; c < kChannelBlock; c += 8) {
      store_values(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)(d + c))), bases + c, out + c);
    }
  }

  template <class Sums>
  static void finish(const Sums& sums, const PairTile& tile, const int32_t* const* bases,
                     const BlockSink& sink) {
    alignas(64) float results[kTilePixels][kChannelBlock];
    for (int p = 0; p < tile.count; ++p) values(sums, p, bases[p], results[p]);
    sink.put_values(results, tile);
  }

  /// Bytes of two pixels to 2 table offsets each: low nibbles of both side by side, then high nibbles,
  /// interleaved.
  static void expand(const uint32_t* first, const uint32_t* second, int words_in, uint16_t* out) {
    const __m128i low_nibbles = _mm_set1_epi8(15), high_nibbles = _mm_set1_epi8((char)0xf0);
    int w = 0;
    const auto steps = [&](__m128i a, __m128i b, __m128i(&bytes)[2]) PHONEBIT_LAMBDA_INLINE {
      const __m128i low =
          _mm_or_si128(_mm_and_si128(a, low_nibbles), _mm_and_si128(_mm_slli_epi16(b, 4), high_nibbles));
      const __m128i high =
          _mm_or_si128(_mm_and_si128(_mm_srli_epi16(a, 4), low_nibbles), _mm_and_si128(b, high_nibbles));
      bytes[0] = _mm_unpacklo_epi8(low, high);
      bytes[1] = _mm_unpackhi_epi8(low, high);
    };
    const auto store = [&](__m128i bytes, int at) PHONEBIT_LAMBDA_INLINE {
      _mm256_storeu_si256((__m256i*)(out + at), _mm256_slli_epi16(_mm256_cvtepu8_epi16(bytes), 4));
    };
    __m128i bytes[2];
    for (; w + 4 <= words_in; w += 4) {
      steps(_mm_loadu_si128((const __m128i*)(first + w)), _mm_loadu_si128((const __m128i*)(second + w)),
            bytes);
      store(bytes[0], 8 * w);
      store(bytes[1], 8 * w + 16);
    }
    if (w + 2 <= words_in) {
      steps(_mm_loadl_epi64((const __m128i*)(first + w)), _mm_loadl_epi64((const __m128i*)(second + w)),
            bytes);
      store(bytes[0], 8 * w);
      w += 2;
    }
    if (w < words_in) expand_word(first[w], second[w], out + 8 * w);
  }
};

constexpr BinaryPlanesKernel kPlanes = planes_kernel<Avx2>();

}  // namespace

extern const BinaryConvKernel kPairTableConv_avx2 =
    pair_table_kernel<Avx2>("bconv2d_b32__avx2pairtable", &kPlanes);

}  // namespace phonebit::engine::cpu
