// The sums of u8_conv_direct.inl: four taps of a pixel are broadcast as one 32-bit word and meet one 32-bit
// lane a channel.
//
// AVX-512 VNNI: vpdpbusd adds u8 * s8 (+1/-1) to 32-bit sums. AVX2: vpmaddubsw adds pairs of them to 16 bits.
// Others: weights are byte masks m (255 for +1, 0 for -1); with A = sum over taps of x & m and the window's
// total,
//   S = sum over +1 taps of x - sum over -1 taps of x = 2 A - total.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, from u8_conv_direct.inl.
#pragma once

/// A tile's sums stay in registers: kU8Vectors vectors of channels, less where fewer channels are left, and
/// as many pixels as that leaves room for.
#if defined(__AVX512F__)
constexpr int kU8Sums = 20, kU8Vectors = 4;
#elif defined(__AVX2__)
constexpr int kU8Sums = 8, kU8Vectors = 4;
#elif defined(__aarch64__)
constexpr int kU8Sums = 12, kU8Vectors = 4;
#elif defined(__ARM_NEON)
constexpr int kU8Sums = 8, kU8Vectors = 4;
#else
constexpr int kU8Sums = 4, kU8Vectors = 2;
#endif

#if defined(__ARM_NEON)
/// What follows the sums reads them from memory, once written for all pixels: straight code for each of them
/// is what makes a phone's library large. Layers of fewer than 16 channels take the tile of 16.
constexpr bool kU8SumsInMemory = true;
constexpr int kU8FewestVectors = kU8Vectors;
#else
constexpr bool kU8SumsInMemory = false;
constexpr int kU8FewestVectors = 1;
#endif

/// More than ten windows have more addresses than there are registers.
template <int kVectors>
constexpr int kU8Pixels = kU8Sums / kVectors < 10 ? kU8Sums / kVectors : 10;

typedef uint16_t HalfVector __attribute__((vector_size(kVectorBytes)));

#if defined(__AVX512F__)
constexpr int kU8Positive = 1, kU8Negative = -1;
/// 32-bit sums never overflow where the accumulator itself does not.
constexpr int kU8FlushGroups = kU8NoFlush;
#elif defined(__AVX2__)
constexpr int kU8Positive = 1, kU8Negative = -1;
/// Two taps of 255 a group must stay within 16 signed bits: 64 * 510 = 32640.
constexpr int kU8FlushGroups = 64;
#else
constexpr int kU8Positive = 255, kU8Negative = 0;
/// Two taps of 255 a group must stay within 16 unsigned bits: 128 * 510 = 65280.
constexpr int kU8FlushGroups = 128;
#endif

/// The sums of a vector of channels. On Arm in the type of the operation that adds: gcc copies registers
/// whose type changes.
#if defined(__ARM_NEON)
typedef uint16x8_t U8VectorSum;
#else
typedef WordVector U8VectorSum;
#endif

/// sum += the dot products of four bytes of x and weight, by 32-bit lane; in 16-bit halves except on AVX-512.
PHONEBIT_INLINE U8VectorSum add_products(U8VectorSum sum, WordVector x, WordVector weight) {
#if defined(__AVX512F__)
  return (WordVector)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)weight);
#elif defined(__AVX2__)
  return (WordVector)_mm256_add_epi16((__m256i)sum, _mm256_maddubs_epi16((__m256i)x, (__m256i)weight));
#elif defined(__ARM_NEON)
  return vpadalq_u8(sum, (uint8x16_t)(x & weight));
#else
  const HalfVector chosen = (HalfVector)(x & weight);
  return (WordVector)((HalfVector)sum + (chosen & 0xff) + (chosen >> 8));
#endif
}

/// The 32-bit sum of each lane.
PHONEBIT_INLINE IntVector whole_sums(U8VectorSum sum) {
#if defined(__AVX512F__)
  return (IntVector)sum;
#elif defined(__AVX2__)
  return (IntVector)_mm256_madd_epi16((__m256i)sum, _mm256_set1_epi16(1));
#elif defined(__ARM_NEON)
  return (IntVector)vpaddlq_u16(sum);
#else
  return (IntVector)((sum >> 16) + (sum & 0xffffu));
#endif
}

template <int kVectors>
using U8Sums = IntVector[kU8Pixels<kVectors>][kVectors];

/// sums[p][j] = S over the groups [begin, end), for kVectors vectors of channels from `channel` on.
template <int kVectors>
PHONEBIT_INLINE void u8_part(const U8Tile& tile, int channel, int begin, int end, U8Sums<kVectors>& sums) {
  constexpr int kPixels = kU8Pixels<kVectors>;
  U8VectorSum sum[kPixels][kVectors] = {};
  [[maybe_unused]] U8VectorSum total[kPixels] = {};
  const uint8_t* windows[kPixels];
  unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { windows[p] = tile.window + p * tile.pixel_bytes; });
  const uint32_t* weights = (const uint32_t*)tile.weights + channel + (size_t)begin * kChannelBlock;
  // The last group may reach beyond the window, where only the filters' masks are 0.
  [[maybe_unused]] const uint32_t last_taps = ~0u >> 8 * (tile.groups * kTapGroup - tile.taps);
  int64_t g = begin;
  do {  // at least one group: gcc allocates registers badly around a loop that may not run
    if constexpr (kPixels == 3 && kVectors == 4) PHONEBIT_MCA_MARKER("begin byte_masks 192 MAC");
    [[maybe_unused]] const WordVector real_taps = WordVector{} + (g == tile.groups - 1 ? last_taps : ~0u);
    WordVector weight[kVectors];
    unroll<kVectors>([&](auto j)
                         PHONEBIT_LAMBDA_INLINE { weight[j] = load<WordVector>(weights + j * kLanes); });
    unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
      uint32_t taps;
      __builtin_memcpy(&taps, windows[p] + g * kTapGroup, sizeof taps);
      const WordVector x = WordVector{} + taps;
      unroll<kVectors>([&](auto j)
                           PHONEBIT_LAMBDA_INLINE { sum[p][j] = add_products(sum[p][j], x, weight[j]); });
      if constexpr (kU8Negative == 0) total[p] = add_products(total[p], x, real_taps);
    });
    weights += kChannelBlock;
    if constexpr (kPixels == 3 && kVectors == 4) PHONEBIT_MCA_MARKER("end byte_masks");
  } while (++g < end);
  unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
      sums[p][j] = whole_sums(sum[p][j]);
      if constexpr (kU8Negative == 0) sums[p][j] = 2 * sums[p][j] - whole_sums(total[p]);
    });
  });
}
