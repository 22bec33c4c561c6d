// @kernel   bgemv_b32__avx2   binary convolution whose window is the whole map, threshold or epilogue fused
// @math     d = sum over words of popcount(x xor w);  acc = K - 2 d
// @in       packed bits as they are
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [Cout/64][byte of the window][64 x u8]
// @source   own; one-pixel form of avx2/pair_table.inl
//
// One output pixel uses every weight once: the layer is a stream of weights, and what counts is bytes. So
// weights stay packed, 8 bits per channel and byte lane, and are split into two table indices in registers: 7
// operations of 32 bytes (2 ands, 1 shift, 2 shuffles, 2 additions), 13.7 bytes per cycle on three vector
// ports, where the pair table's layout would read twice as many.
#include "select.h"
#include "simd/avx2.h"

namespace phonebit::engine::cpu {
namespace {

#include "portable/border_classes.inl"
#include "portable/epilogue.inl"
#include "portable/weight_stream.inl"

constexpr int kByteSteps = 28;        // 28 * 8 <= 255 fits byte sums; whole words
constexpr int64_t kPartSteps = 8176;  // 8176 * 8 <= 65535 fits 16-bit sums; a multiple of kByteSteps

/// Counts of both nibbles of an activation byte: tables[x][h][i] = popcount(i ^ nibble h of x).
struct ByteTables {
  alignas(64) uint8_t rows[256][2][16];
  constexpr ByteTables() : rows() {
    constexpr uint8_t kBits[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};
    for (int x = 0; x < 256; ++x) {
      for (int i = 0; i < 16; ++i) {
        rows[x][0][i] = kBits[(x & 15) ^ i];
        rows[x][1][i] = kBits[(x >> 4) ^ i];
      }
    }
  }
};
constexpr ByteTables kByteTables;

int block_count(const ConvShape& s) { return (s.out_c + kChannelBlock - 1) / kChannelBlock; }
int64_t window_bytes(const ConvShape& s) { return (int64_t)4 * s.kernel_h * s.kernel_w * words(s.in_c); }

/// Packed: per block 64 limits (bit = d < limit; 0 beyond out_c) or bases; then the blocks' weights.
size_t head_bytes(const ConvShape& s) { return sizeof(int32_t) * kChannelBlock * block_count(s); }

size_t packed_bytes(const ConvShape& s) {
  return head_bytes(s) + (size_t)window_bytes(s) * kChannelBlock * block_count(s);
}

void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed) {
  int32_t* head = (int32_t*)packed;
  uint8_t* out = (uint8_t*)packed + head_bytes(s);
  const int64_t bytes = window_bytes(s);
  const int32_t base = s.kernel_h * s.kernel_w * s.in_c;
  for (int block = 0; block < block_count(s); ++block, out += bytes * kChannelBlock) {
    for (int lane = 0; lane < kChannelBlock; ++lane) {
      const int c = block * kChannelBlock + lane;
      const bool exists = c < s.out_c;
      head[c] = thresholds == nullptr ? base
                : exists              ? (int32_t)popcount_limit(base, thresholds[c], INT32_MAX)
                                      : 0;
      const uint32_t* filter = weights + (exists ? c : s.out_c - 1) * (bytes / 4);
      for (int64_t i = 0; i < bytes; ++i)
        out[i * kChannelBlock + lane] = (uint8_t)(filter[i / 4] >> (8 * (i % 4)));
    }
  }
}

/// 16-bit sums of even and odd lanes: total collects even + 256 odd modulo 2^16.
struct Sums {
  __m256i total, odd;

  PHONEBIT_INLINE void add(__m256i bytes) {
    total = _mm256_add_epi16(total, bytes);
    odd = _mm256_add_epi16(odd, _mm256_srli_epi16(bytes, 8));
  }
  PHONEBIT_INLINE void add_to(int32_t* counts) const {
    const __m256i even = _mm256_sub_epi16(total, _mm256_slli_epi16(odd, 8));
    const __m256i low = _mm256_unpacklo_epi16(even, odd), high = _mm256_unpackhi_epi16(even, odd);
    const __m128i parts[4] = {_mm256_castsi256_si128(low), _mm256_castsi256_si128(high),
                              _mm256_extracti128_si256(low, 1), _mm256_extracti128_si256(high, 1)};
    __m256i* to = (__m256i*)counts;
    for (int i = 0; i < 4; ++i) {
      _mm256_store_si256(to + i,
                         _mm256_add_epi32(_mm256_load_si256(to + i), _mm256_cvtepu16_epi32(parts[i])));
    }
  }
};

/// d of 64 channels. `steps` is a multiple of 4: whole words.
PHONEBIT_NOINLINE void count_block(const uint8_t* x, int64_t steps, const uint8_t* weights,
                                   int32_t (&counts)[kChannelBlock]) {
  const __m256i nibble = _mm256_set1_epi8(15);
  __builtin_memset(counts, 0, sizeof(counts));
  while (steps > 0) {
    Sums sums[2] = {};
    const int64_t part = steps < kPartSteps ? steps : kPartSteps;
    for (int64_t done = 0; done < part;) {
      __m256i bytes[2] = {};
      const int64_t end = part - done < kByteSteps ? part : done + kByteSteps;
      for (; done < end; done += 4, x += 4, weights += 4 * kChannelBlock) {
        for (int i = 0; i < 4; ++i) {
          ask_ahead<kChannelBlock>(weights + i * kChannelBlock);
          const __m256i low_table =
              _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i*)kByteTables.rows[x[i]][0]));
          const __m256i high_table =
              _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i*)kByteTables.rows[x[i]][1]));
          for (int q = 0; q < 2; ++q) {
            __m256i w = _mm256_load_si256((const __m256i*)(weights + i * kChannelBlock) + q);
            asm("" : "+x"(w));  // or gcc loads it twice, once into each use
            const __m256i low = _mm256_and_si256(w, nibble);
            const __m256i high = _mm256_and_si256(_mm256_srli_epi16(w, 4), nibble);
            bytes[q] = _mm256_add_epi8(bytes[q], _mm256_shuffle_epi8(low_table, low));
            bytes[q] = _mm256_add_epi8(bytes[q], _mm256_shuffle_epi8(high_table, high));
          }
        }
      }
      sums[0].add(bytes[0]);
      sums[1].add(bytes[1]);
    }
    sums[0].add_to(counts);
    sums[1].add_to(counts + 32);
    steps -= part;
  }
}

/// Bit c: counts[c] < limits[c], of 32.
PHONEBIT_INLINE uint32_t bits_below(const int32_t* counts, const int32_t* limits) {
  uint32_t bits = 0;
  for (int q = 0; q < 4; ++q) {
    const __m256i below = _mm256_cmpgt_epi32(_mm256_loadu_si256((const __m256i*)limits + q),
                                             _mm256_load_si256((const __m256i*)counts + q));
    bits |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(below)) << (8 * q);
  }
  return bits;
}

void run(const ConvShape& s, const void* packed, const uint32_t* input, const void*, const OutputRange& range,
         const AccumulatorSink& sink) {
  if (range.pixel_begin >= range.pixel_end) return;
  const int64_t bytes = window_bytes(s);
  alignas(64) int32_t counts[kChannelBlock];
  alignas(64) float values[kChannelBlock];
  for (int block = range.block_begin; block < range.block_end; ++block) {
    const int32_t* head = (const int32_t*)packed + block * kChannelBlock;
    count_block((const uint8_t*)input, bytes,
                (const uint8_t*)packed + head_bytes(s) + bytes * kChannelBlock * block, counts);
    const int rest = s.out_c - block * kChannelBlock, channels = rest < kChannelBlock ? rest : kChannelBlock;
    if (sink.threshold_bits == nullptr) {
      for (int c = 0; c < kChannelBlock; ++c) values[c] = (float)(head[c] - 2 * counts[c]);
      apply_epilogue(*sink.epilogue, values, 0, 1, block * kChannelBlock, channels);
      continue;
    }
    for (int word = 0; word < words(channels); ++word) {
      sink.threshold_bits[block * (kChannelBlock / 32) + word] =
          bits_below(counts + 32 * word, head + 32 * word);
    }
  }
}

size_t no_scratch(const ConvShape&) { return 0; }
int no_rows(const ConvShape&) { return 0; }
void nothing_to_prepare(const ConvShape&, const uint32_t*, void*, int, int) {}

}  // namespace

extern const BinaryConvKernel kDenseConv_avx2 = {
    "bgemv_b32__avx2", packed_bytes, pack_weights, no_scratch, no_rows, nothing_to_prepare, run};

}  // namespace phonebit::engine::cpu
