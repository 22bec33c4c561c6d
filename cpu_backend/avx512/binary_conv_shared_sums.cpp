// @kernel   bconv2d_shared_sums__avx512gfni   binary convolution, stride 1, threshold or epilogue fused
// @math     d_f = n_f + S - 2 D_f, counted by full adders, see below;
//           acc = base_M - 2 d (border_classes.inl)
// @in       packed bits, as planes in scratch
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [Cout/64][group of 4 to 6 filters][lists of planes]
// @source   own; full adders after Harley and Seal
//
// Lanes are pixels, a bit each: a plane holds 512 of them for one position (tap and channel) of the window. A
// group of filters w_0 ... w_F-1 shares sums. Let e_f be the positions at which w_f differs from w_0, and
//   S = sum of popcount(x ^ w_0) over all positions,   D_f = the same over e_f,   n_f = |e_f|.
// Over e_f, x ^ w_f is 1 where x ^ w_0 is 0; over the other positions they are equal. So
//   d_f = sum of popcount(x ^ w_f) = (S - D_f) + (n_f - D_f).
// A position is of one of 2^(F-1) classes, by the filters that differ from w_0 there. Each class is summed
// once; S and D_f are sums of classes. So a position costs one full adder, two ternary logics, for 512 F
// products, where counting takes xor, popcount and add for 512. Sums are binary numbers, a plane a digit.
// x ^ 1 costs nothing: a class has its positions with w_0 = 0 first, then the others, for which the adder's
// table is another one.
//
// n_f is part of the limits and bases: what is made here is d_f - n_f, a number with a sign.
//
// What it takes besides: planes, made once for all filters; sums of classes; digits to numbers, by a
// transposition of bytes and one of bits.
#include "binary_conv_kernels.h"
#include "portable/intrinsics.h"
#include "select.h"

namespace phonebit::engine::cpu {
namespace {

#include "popcount_layout.inl"
#include "portable/epilogue.inl"
#include "shared_sums_add.inl"
#include "shared_sums_lists.inl"
#include "shared_sums_planes.inl"

size_t packed_bytes(const ConvShape& s) {
  return head_bytes(s, border_class_count(s)) +
         round_up_64(sizeof(uint16_t) * block_entries(s) * block_count(s));
}

void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed) {
  const int filter_words = window_positions(s) / 32;
  pack_head(s, weights, 0, packed, [&](int channel, int32_t base) {
    const uint32_t* const own = weights + (size_t)channel * filter_words;
    const int in_group = channel % kChannelBlock % group_filters(s);
    const uint32_t* const first = own - (size_t)in_group * filter_words;
    int differing = 0;
    for (int i = 0; i < filter_words; ++i) differing += __builtin_popcount(own[i] ^ first[i]);
    if (thresholds == nullptr) return (uint32_t)(base - 2 * differing);
    return popcount_limit(base, thresholds[channel], INT32_MAX) - (uint32_t)differing;
  });
  uint16_t* lists = (uint16_t*)PackedLayer(s, packed).weights;
  for (int block = 0; block < block_count(s); ++block, lists += block_entries(s)) {
    uint16_t* out = lists;
    for (int c = 0, filters; c < kChannelBlock; c += filters, weights += (size_t)filters * filter_words) {
      filters = filters_from(s, c);
      out = pack_group(s, weights, filters, out);
    }
  }
}

/// Digits of a group's filters. Returns the next group's list.
template <int kDigits, int kHigh, class V>
PHONEBIT_INLINE const uint16_t* add_group(const uint8_t* planes, const uint16_t* list, int filters,
                                          int channel, DigitRows<kHigh, V>& rows) {
  ClassSums<kDigits, V> sums[1 << (kMostFilters - 2)];
  list = add_classes<1>(planes, list, 1 << (filters - 2), sums);
  if (filters == 4) put_digits<4>(sums, channel, rows);
  if (filters == 5) put_digits<5>(sums, channel, rows);
  if (filters == 6) put_digits<6>(sums, channel, rows);
  return list;
}

/// d_f - n_f of a pixel, 16 channels a vector; `bytes` are those of `step` bytes for every 16 channels.
template <int kHigh, int kVectors>
PHONEBIT_INLINE void read_counts(const uint8_t* bytes, size_t step, __m512i (&counts)[kVectors]) {
  const auto widened = [&](int i) PHONEBIT_LAMBDA_INLINE {
    return _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i*)(bytes + i * step)));
  };
  unroll<kVectors>([&](auto q) PHONEBIT_LAMBDA_INLINE {
    constexpr int kFrom = kHigh == 8 ? q : q % 2, kShift = kHigh == 8 || q >= 2 ? 24 : 28;
    const __m512i high = _mm512_slli_epi32(widened(kVectors + kFrom), kShift);
    const __m512i sign_and_high = _mm512_srai_epi32(high, 24 - kHigh);
    // Below the high digits of a byte's second half are those of its first.
    counts[q] = _mm512_ternarylogic_epi32(sign_and_high, _mm512_set1_epi32(255), widened(q), 0xba);
  });
}

/// A block of channels of a tile.
struct Part {
  const PackedLayer& layer;
  const OutputRange& range;
  const AccumulatorSink& sink;
  int first_group, group_end, block;
};

/// Pixels of a group, of which byte `at` of bytes[..][8 h + p] belongs to pixel p.
template <int kHigh>
PHONEBIT_INLINE void finish_group(const ConvShape& s, const Part& part, int group, const uint8_t* bytes,
                                  size_t vector_bytes) {
  constexpr int kVectors = kChannelBlock / 16;
  alignas(64) float values[kGroupPixels][kChannelBlock];
  const int y = group / row_groups(s), x = group % row_groups(s) * kGroupPixels;
  const int first = y * s.out_w + x;
  int begin = part.range.pixel_begin - first, end = part.range.pixel_end - first;
  if (begin < 0) begin = 0;
  if (end > kGroupPixels) end = kGroupPixels;
  if (end > s.out_w - x) end = s.out_w - x;
  if (begin >= end) return;
  const uint32_t* const head = part.layer.block_head(part.block);
  for (int p = begin; p < end; ++p) {
    __m512i counts[kVectors];
    read_counts<kHigh>(bytes + p * vector_bytes, 16 * vector_bytes, counts);
    const uint32_t* const limits = head + part.layer.borders.class_of(s, y, x + p) * kChannelBlock;
    if (part.sink.threshold_bits == nullptr) {
      store_values(counts, limits, values[p]);
      continue;
    }
    uint64_t bits = 0;
    unroll<kVectors>([&](auto q) PHONEBIT_LAMBDA_INLINE {
      const __mmask16 below = _mm512_cmplt_epi32_mask(counts[q], _mm512_load_si512(limits + 16 * q));
      bits |= (uint64_t)below << (16 * q);
    });
    uint32_t* const to = part.sink.threshold_bits + (size_t)(first + p) * part.sink.pixel_words;
    __builtin_memcpy(to + part.block * (kChannelBlock / 32), &bits, sizeof bits);
  }
  if (part.sink.threshold_bits == nullptr)
    apply_epilogue(*part.sink.epilogue, values[begin], first + begin, end - begin, part.block * kChannelBlock,
                   kChannelBlock);
}

template <int kHigh, class V>
PHONEBIT_NOINLINE void finish_rows(const ConvShape& s, const DigitRows<kHigh, V>& rows, const Part& part) {
  constexpr int kLow = kChannelBlock / 16, kAll = kLow + sizeof rows.high / sizeof rows.low[0] / 16;
  alignas(64) uint8_t bytes[kAll][16][sizeof(V)];
  for (int m = 0; m < 8; ++m) {
    for (int q = 0; q < kAll; ++q) {
      const auto* const from = q < kLow ? rows.low + 16 * q : rows.high + 16 * (q - kLow);
      V v[16];
      unroll<16>([&](auto i) PHONEBIT_LAMBDA_INLINE { v[i] = from[i][m]; });
      transpose_bytes(v);
      unroll<16>([&](auto i) PHONEBIT_LAMBDA_INLINE { store(bytes[q][i], v[i]); });
    }
    for (int i = 0; i < (int)sizeof(V) / 8; ++i) {
      const int part_of_vector = i / 2 * 16;
      const int group = part.first_group + part_of_vector + m * 2 + i % 2;
      if (group < part.group_end)
        finish_group<kHigh>(s, part, group, bytes[0][i % 2 * 8] + part_of_vector, sizeof(V));
    }
  }
}

template <int kHigh, class V>
PHONEBIT_NOINLINE void run_block(const ConvShape& s, const uint8_t* planes, const Part& part) {
  alignas(64) DigitRows<kHigh, V> rows;
  const uint16_t* list = (const uint16_t*)part.layer.weights + block_entries(s) * part.block;
  for (int c = 0, filters; c < kChannelBlock; c += filters) {
    filters = filters_from(s, c);
    const bool is_long = *list++ != 0;
    list = (is_long ? add_group<12, kHigh, V> : add_group<8, kHigh, V>)(planes, list, filters, c, rows);
  }
  for (auto& row : rows.low) turn_digits(row);
  for (auto& row : rows.high) turn_digits(row);
  finish_rows(s, rows, part);
}

void run(const ConvShape& s, const void* packed, const uint32_t*, const void* scratch,
         const OutputRange& range, const AccumulatorSink& sink) {
  if (range.pixel_begin >= range.pixel_end) return;
  const PackedLayer layer(s, packed);
  const auto group_at = [&](int pixel) {
    return pixel / s.out_w * row_groups(s) + pixel % s.out_w / kGroupPixels;
  };
  const bool has_long_numbers = window_positions(s) >= 1 << 11;  // and a sign
  const int end = group_at(range.pixel_end - 1) + 1;
  alignas(64) uint8_t planes[kMostPlanesBytes];
  for (int first = group_at(range.pixel_begin), last; first < end; first = last) {
    const int tile = end - first > 32 ? tile_groups(s) : 32;
    last = first + tile < end ? first + tile : end;
    make_planes(s, (const char*)scratch, first, tile, planes);
    for (int block = range.block_begin; block < range.block_end; ++block) {
      const Part part = {layer, range, sink, first, last, block};
      if (tile == 64)
        (has_long_numbers ? run_block<8, __m512i> : run_block<4, __m512i>)(s, planes, part);
      else
        (has_long_numbers ? run_block<8, __m256i> : run_block<4, __m256i>)(s, planes, part);
    }
  }
}

}  // namespace

const BinaryConvKernel kSharedSumsConv_avx512 = {
    "bconv2d_shared_sums__avx512gfni",
    shares_sums_avx512,
    packed_bytes,
    pack_weights,
    scratch_bytes,
    prepare_rows,
    prepare_input,
    kSharedAvx512Pixels,
    run,
};

}  // namespace phonebit::engine::cpu
