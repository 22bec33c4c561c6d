// What the counting kernels' packed weights have in common, and how a tile of counts becomes output.
//
// Packed: [border table][per block, per border class: 64 u32][weights, as each kernel lays them out].
// The u32 are limits (bit = d < limit) or, for the epilogue form, bases (acc = base - 2 d). Channels beyond
// out_c get limit 0, so their bits come out as 0 without a mask.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "portable/padded_map.inl"

static inline int block_count(const ConvShape& s) { return (s.out_c + kChannelBlock - 1) / kChannelBlock; }

static inline int block_channels(const ConvShape& s, int block) {
  const int rest = s.out_c - block * kChannelBlock;
  return rest < kChannelBlock ? rest : kChannelBlock;
}

static inline size_t head_bytes(const ConvShape& s, int border_classes) {
  return border_table_bytes(s) + sizeof(uint32_t) * kChannelBlock * block_count(s) * border_classes;
}

/// Writes the border table, and entry(channel, border base) for each channel and border class; channels from
/// out_c on get `beyond`.
template <class Entry>
static inline void pack_head(const ConvShape& s, const uint32_t* weights, uint32_t beyond, void* packed,
                             const Entry& entry) {
  write_border_table(s, packed);
  const BorderTable& borders = *(const BorderTable*)packed;
  uint32_t* head = (uint32_t*)((char*)packed + border_table_bytes(s));
  const size_t filter_words = (size_t)s.kernel_h * s.kernel_w * words(s.in_c);
  for (int c = 0; c < block_count(s) * kChannelBlock; ++c) {
    uint32_t* of_channel =
        head + (size_t)(c / kChannelBlock) * borders.count() * kChannelBlock + c % kChannelBlock;
    for_each_border_class(s, borders, [&](int index, TapSpan rows, TapSpan columns) {
      uint32_t* out = of_channel + (size_t)index * kChannelBlock;
      *out = c < s.out_c ? entry(c, border_base(s, weights + c * filter_words, rows, columns)) : beyond;
    });
  }
}

static inline void pack_limits(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                               void* packed) {
  pack_head(s, weights, 0, packed, [thresholds](int channel, int32_t base) {
    return thresholds != nullptr ? popcount_limit(base, thresholds[channel], INT32_MAX) : (uint32_t)base;
  });
}

/// A packed layer as the kernels read it.
struct PackedLayer {
  const BorderTable& borders;
  const uint32_t* head;
  const char* weights;

  PackedLayer(const ConvShape& s, const void* packed)
      : borders(*(const BorderTable*)packed),
        head((const uint32_t*)((const char*)packed + border_table_bytes(s))),
        weights((const char*)packed + head_bytes(s, borders.count())) {}

  const uint32_t* block_head(int block) const {
    return head + (size_t)block * borders.count() * kChannelBlock;
  }
};

/// Bytes of 64 filters as [tap][words(in_c)][64 x u32].
static inline size_t block_weights_bytes(const ConvShape& s) {
  return sizeof(uint32_t) * kChannelBlock * s.kernel_h * s.kernel_w * words(s.in_c);
}

/// The filters of all blocks in that layout; word(filter, i) is word i of one. Filters beyond out_c are 0.
template <class Word>
static inline void interleave_filters(const ConvShape& s, uint32_t* out, const Word& word) {
  const int filter_words = s.kernel_h * s.kernel_w * words(s.in_c);
  for (int block = 0; block < block_count(s); ++block) {
    for (int i = 0; i < filter_words; ++i) {
      for (int c = block * kChannelBlock; c < (block + 1) * kChannelBlock; ++c) {
        *out++ = c < s.out_c ? word(c, i) : 0;
      }
    }
  }
}

static inline void interleave_filters(const ConvShape& s, const uint32_t* weights, uint32_t* out) {
  const size_t filter_words = (size_t)s.kernel_h * s.kernel_w * words(s.in_c);
  interleave_filters(s, out, [&](int filter, int i) { return weights[filter * filter_words + i]; });
}

template <int kPixels, int kVectors>
PHONEBIT_INLINE void clear(__m512i (&counts)[kPixels][kVectors]) {
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](int q) PHONEBIT_LAMBDA_INLINE { counts[p][q] = _mm512_setzero_si512(); });
  });
}

template <int kPixels, int kVectors>
PHONEBIT_INLINE void make_double(__m512i (&counts)[kPixels][kVectors]) {
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](int q)
                         PHONEBIT_LAMBDA_INLINE { counts[p][q] = _mm512_slli_epi32(counts[p][q], 1); });
  });
}

/// The second of two planes of levels, as a kernel of one map needs it.
struct HighPlane {
  ptrdiff_t step;      // words from a window of the first map to that of the second
  const void* packed;  // null: there is none

  static HighPlane of(const void* const* packed, const void* low, const void* high) {
    return {((intptr_t)high - (intptr_t)low) / (ptrdiff_t)sizeof(uint32_t), packed[1]};
  }
  /// Null where there is no such plane.
  const uint32_t* block_head(const ConvShape& s, int block) const {
    return packed == nullptr ? nullptr : PackedLayer(s, packed).block_head(block);
  }
};

/// Counts of one pixel for kVectors * 16 channels, the first of a word, compared: writes the words that
/// exist. A single vector is all that the last word has.
template <int kVectors>
PHONEBIT_INLINE void store_bits(const __m512i (&counts)[kVectors], const uint32_t* limits, uint32_t* out,
                                int words_out) {
  static_assert(kVectors == 1 || kVectors % 2 == 0, "whole words");
  if constexpr (kVectors == 1) out[0] = _mm512_cmplt_epu32_mask(counts[0], _mm512_load_si512(limits));
  unroll<kVectors / 2>([&](int w) PHONEBIT_LAMBDA_INLINE {
    const __mmask16 low = _mm512_cmplt_epu32_mask(counts[2 * w], _mm512_load_si512(limits + 32 * w));
    const __mmask16 high =
        _mm512_cmplt_epu32_mask(counts[2 * w + 1], _mm512_load_si512(limits + 32 * w + 16));
    if (w < words_out) out[w] = _mm512_kunpackw(high, low);
  });
}

/// The same counts as float32 accumulators, into a row of an epilogue tile. Counts of two planes are d0 + 2 d1, and
/// their base is that of the first and twice that of the second (`high_bases`, else null).
template <int kVectors>
PHONEBIT_INLINE void store_values(const __m512i (&counts)[kVectors], const uint32_t* bases, float* out,
                                  const uint32_t* high_bases = nullptr) {
  unroll<kVectors>([&](int q) PHONEBIT_LAMBDA_INLINE {
    __m512i base = _mm512_load_si512(bases + 16 * q);
    if (high_bases != nullptr)
      base = _mm512_add_epi32(base, _mm512_slli_epi32(_mm512_load_si512(high_bases + 16 * q), 1));
    _mm512_store_ps(out + 16 * q,
                    _mm512_cvtepi32_ps(_mm512_sub_epi32(base, _mm512_slli_epi32(counts[q], 1))));
  });
}
