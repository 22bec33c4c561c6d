// @kernel   bconv2d_shared_sums__avx512gfni   binary convolution, stride 1, threshold or epilogue fused
// @math     d_f = n_f + S - 2 D_f, counted by full adders, see below;
//           acc = base_M - 2 d (border_classes.inl)
// @in       packed bits, as planes in scratch
// @out      packed bits, or float32 tiles for the epilogue
// @weights  lanes of border classes; digits of limits [Cout/64][3 classes][64][digit];
//           [Cout/64][group of 4 to 6 filters][lists of planes]
// @source   own; full adders after Harley and Seal
//
// Lanes are pixels, one bit per pixel: a plane holds 512 of them for one position (tap and channel) of the
// window. A group of filters w_0 ... w_F-1 shares sums. Let e_f be the positions at which w_f differs from
// w_0, and
//   S = sum of popcount(x ^ w_0) over all positions,   D_f = the same over e_f,   n_f = |e_f|.
// Over e_f, x ^ w_f is 1 where x ^ w_0 is 0; over the other positions they are equal. So
//   d_f = sum of popcount(x ^ w_f) = (S - D_f) + (n_f - D_f).
// A position is of one of 2^(F-1) classes, by the filters that differ from w_0 there. Each class is summed
// once; S and D_f are sums of classes. So a position costs one full adder, two ternary logics, for 512 F
// products, where counting needs xor, popcount and add for 512. Sums are binary numbers, one plane per digit.
// x ^ 1 costs nothing: a class has its positions with w_0 = 0 first, then the others, for which the adder's
// table is another one.
//
// n_f is part of the limits and bases: what is made here is d_f - n_f, a number with a sign.
//
// What else it costs: planes, made once for all filters; sums of classes; digits to numbers, by a
// transposition of bytes and one of bits. Thresholds are compared with digits (shared_sums_layout.inl): there
// only results are transposed.
#include "select.h"
#include "simd/avx512.h"

namespace phonebit::engine::cpu {
namespace {

#include "portable/epilogue.inl"
#include "portable/finish_tile.inl"
#include "shared_sums_layout.inl"

size_t packed_bytes(const ConvShape& s) {
  const int classes = border_class_count(s);
  return head_bytes(s, classes) + lanes_bytes(s, classes) +
         (size_t)table_count(classes) * kTableDigits * block_count(s) +
         round_up_64(sizeof(uint16_t) * block_entries(s) * block_count(s));
}

/// After the head: lanes of border classes, digits of limits, lists.
struct PackedSums : PackedLayer {
  using PackedLayer::PackedLayer;

  uint8_t* lanes() const { return (uint8_t*)weights; }
  uint8_t* digits(const ConvShape& s, int block) const {
    const int classes = borders.count();
    return lanes() + lanes_bytes(s, classes) + (size_t)table_count(classes) * kTableDigits * block;
  }
  uint16_t* lists(const ConvShape& s, int block) const {
    return (uint16_t*)digits(s, block_count(s)) + block_entries(s) * block;
  }
};

void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed) {
  const int filter_words = window_positions(s) / 32;
  pack_head(s, weights, 0, packed, [&](int channel, int32_t base) {
    const uint32_t* const own = weights + (size_t)channel * filter_words;
    const int in_group = channel % kChannelBlock % group_filters(s);
    const uint32_t* const first = own - (size_t)in_group * filter_words;
    int differing = 0;
    for (int i = 0; i < filter_words; ++i) differing += __builtin_popcount(own[i] ^ first[i]);
    if (thresholds == nullptr) return (uint32_t)(base - 2 * differing);
    return stored_limit(s, base, thresholds[channel], differing);
  });
  const PackedSums layer(s, packed);
  pack_lanes(s, layer.borders, layer.lanes());
  for (int block = 0; block < block_count(s); ++block) {
    if (thresholds != nullptr)
      pack_digits(layer.block_head(block), layer.borders.count(), layer.digits(s, block));
    uint16_t* out = layer.lists(s, block);
    for (int c = 0, filters; c < kChannelBlock; c += filters, weights += (size_t)filters * filter_words) {
      filters = filters_from(s, c);
      out = pack_group(s, weights, filters, out);
    }
  }
}

/// Digits of a group's filters. Returns the next group's list.
template <int kDigits, class V, class Digits>
PHONEBIT_INLINE const uint16_t* add_group(const uint8_t* planes, const uint16_t* list, int filters,
                                          int channel, Digits& digits) {
  ClassSums<kDigits, V> sums[1 << (kMaxFilters - 2)];
  list = add_classes<1>(planes, list, 1 << (filters - 2), sums);
  if (filters == 4) put_digits<4>(sums, channel, digits);
  if (filters == 5) put_digits<5>(sums, channel, digits);
  if (filters == 6) put_digits<6>(sums, channel, digits);
  return list;
}

/// Takes byte j of a vector, and of another one, to the low half of 32 bits j.
struct PairOrder {
  alignas(64) uint8_t from[64];

  constexpr PairOrder() : from{} {
    for (int j = 0; j < 16; ++j) from[4 * j] = (uint8_t)j, from[4 * j + 1] = (uint8_t)(64 + j);
  }
};
constexpr PairOrder kPairOrder;

/// A block of channels of a tile.
struct Part {
  const PackedSums& layer;
  const OutputRange& range;
  const AccumulatorSink& sink;
  int first_group, group_end, block;
};

/// Bytes of a group's pixels, and the bases of its row. Its own copies: stores could change what is read
/// through pointers.
template <class V>
struct GroupCounts {
  static constexpr int kVectors = kChannelBlock / 16;
  const uint8_t* bytes;  // the first 128 bits of V [low bytes, then high ones: 16 channels][pixel]
  __m512i order;
  const uint32_t* bases;
  const int* columns;  // border classes of pixels

  /// Values of pixels next to each other.
  template <int kPixels>
  PHONEBIT_INLINE void read_values(int first, FloatVector (*to)[kVectors]) const {
    __m512i base[kVectors];
    const auto load_bases = [&](int p) PHONEBIT_LAMBDA_INLINE {
      const uint32_t* const from = bases + columns[p] * kChannelBlock;
      unroll<kVectors>([&](int q) PHONEBIT_LAMBDA_INLINE { base[q] = _mm512_load_si512(from + 16 * q); });
    };
    const __m512i factors = _mm512_set1_epi32(-2 & 0xffff);
    const auto read = [&](int p) PHONEBIT_LAMBDA_INLINE {
      const auto channels = [&](int i) PHONEBIT_LAMBDA_INLINE {
        const uint8_t* const from = bytes + (i * 16 + first + p) * sizeof(V);
        return _mm512_castsi128_si512(_mm_load_si128((const __m128i*)from));
      };
      unroll<kVectors>([&](int q) PHONEBIT_LAMBDA_INLINE {
        const __m512i pairs = _mm512_permutex2var_epi8(channels(q), order, channels(kVectors + q));
        to[p][q] = (FloatVector)_mm512_cvtepi32_ps(_mm512_dpwssd_epi32(base[q], pairs, factors));
      });
    };
    load_bases(first);
    if (columns[first] == columns[first + kPixels - 1]) {
      unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { read(p); });
    } else {
      unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { load_bases(first + p), read(p); });
    }
  }
};

template <int kPixels, class V>
PHONEBIT_INLINE void finish_values(const GroupCounts<V> counts, int p, const TileFinish& finish) {
  FloatVector values[kPixels][GroupCounts<V>::kVectors];
  counts.template read_values<kPixels>(p, values);
  finish_tile(finish, values);
}

/// The pixels of a group that are in the range: first + [begin, end).
struct GroupPixels {
  int y, x, first, begin, end;

  GroupPixels(const ConvShape& s, const OutputRange& range, int group)
      : y(group / row_groups(s)),
        x(group % row_groups(s) * kGroupPixels),
        first(y * s.out_w + x),
        begin(range.pixel_begin - first),
        end(range.pixel_end - first) {
    if (begin < 0) begin = 0;
    if (end > kGroupPixels) end = kGroupPixels;
    if (end > s.out_w - x) end = s.out_w - x;
  }
};

template <class V>
PHONEBIT_INLINE void finish_group(const ConvShape& s, const Part& part, int group, const V* bytes, int lane) {
  const auto [y, x, first, begin, end] = GroupPixels(s, part.range, group);
  const BorderTable& borders = part.layer.borders;
  const GroupCounts<V> counts = {
      (const uint8_t*)bytes + 16 * lane,
      _mm512_load_si512(kPairOrder.from),
      part.layer.block_head(part.block) + borders.rows()[y] * borders.column_count * kChannelBlock,
      borders.columns(s) + x,
  };
  const Epilogue& epilogue = *part.sink.epilogue;
  const int channel = part.block * kChannelBlock;
  if (finishes_tiles(s, epilogue)) {
    int p = begin;
    for (; p + 4 <= end; p += 4) finish_values<4>(counts, p, {&epilogue, channel, first + p, first + p + 3});
    for (; p < end; ++p) finish_values<1>(counts, p, {&epilogue, channel, first + p, first + p});
  } else if (begin < end) {
    alignas(64) FloatVector values[kGroupPixels][GroupCounts<V>::kVectors];
    for (int p = begin; p < end; ++p) counts.template read_values<1>(p, values + p);
    apply_epilogue(epilogue, (float*)values[begin], first + begin, end - begin, channel, kChannelBlock);
  }
}

template <int kHigh, class V>
PHONEBIT_NOINLINE void finish_rows(const ConvShape& s, const DigitRows<kHigh, V>& rows, const Part& part) {
  constexpr int kLow = kChannelBlock / 16;
  // [low bytes, then high ones: 16 channels][pixel of two groups]; a vector's 128 bits are of as many pairs
  // of groups.
  V bytes[2 * kLow][16];
  for (int m = 0; m < 8; ++m) {
    const auto turn = [&](const auto* from, const auto& put) PHONEBIT_LAMBDA_INLINE {
      V v[16];
      unroll<16>([&](int i) PHONEBIT_LAMBDA_INLINE { v[i] = from[i][m]; });
      transpose_bytes(v);
      unroll<16>([&](int i) PHONEBIT_LAMBDA_INLINE { put(i, v[i]); });
    };
    for (int q = 0; q < kLow; ++q)
      turn(rows.low + 16 * q, [&](int i, V v) PHONEBIT_LAMBDA_INLINE { bytes[q][i] = v; });
    for (int q = 0; q < kLow * kHigh / 8; ++q)
      turn(rows.high + 16 * q, [&](int i, V v) PHONEBIT_LAMBDA_INLINE {
        if constexpr (kHigh == 8) {
          bytes[kLow + q][i] = v;
        } else {  // 4 bits each of channels 32 apart, with their signs
          bytes[kLow + q][i] = map_bits(v, 0x0102040808080808);
          bytes[kLow + q + 2][i] = map_bits(v, 0x1020408080808080);
        }
      });
    for (int i = 0; i < (int)sizeof(V) / 8; ++i) {
      const int lane = i / 2, group = part.first_group + lane * 16 + m * 2 + i % 2;
      if (group < part.group_end) finish_group(s, part, group, bytes[0] + i % 2 * 8, lane);
    }
  }
}

/// Planes of the bits of 64 channels, to 64 bits of each pixel.
template <class V>
PHONEBIT_NOINLINE void finish_bits(const ConvShape& s, V (&planes)[kChannelBlock / 8][8], const Part& part) {
  for (auto& row : planes) turn_digits(row);
  const size_t words = part.sink.pixel_words;
  for (int m = 0; m < 8; ++m) {
    V v[8];
    unroll<8>([&](int i) PHONEBIT_LAMBDA_INLINE { v[i] = planes[i][m]; });
    transpose_bytes(v);
    uint64_t bits[2][kGroupPixels / 2][sizeof(V) / 8];  // 128 bits: a pair of pixels
    __builtin_memcpy(bits, v, sizeof bits);
    for (int i = 0; i < (int)sizeof(V) / 8; ++i) {
      const int group = part.first_group + i / 2 * 16 + m * 2 + i % 2;
      if (group >= part.group_end) continue;
      const GroupPixels pixels(s, part.range, group);
      uint32_t* const to =
          part.sink.threshold_bits + pixels.first * words + part.block * (kChannelBlock / 32);
      for (int p = pixels.begin; p < pixels.end; ++p)
        __builtin_memcpy(to + p * words, &bits[i % 2][p / 2][i / 2 * 2 + p % 2], sizeof(uint64_t));
    }
  }
}

template <class V, class Digits>
PHONEBIT_INLINE void count_block(const ConvShape& s, const uint8_t* planes, const Part& part,
                                 Digits& digits) {
  const uint16_t* list = part.layer.lists(s, part.block);
  for (int c = 0, filters; c < kChannelBlock; c += filters) {
    filters = filters_from(s, c);
    const bool is_long = *list++ != 0;
    list = (is_long ? add_group<12, V, Digits> : add_group<8, V, Digits>)(planes, list, filters, c, digits);
  }
}

template <int kHigh, class V>
PHONEBIT_NOINLINE void run_values(const ConvShape& s, const uint8_t* planes, const Part& part) {
  alignas(64) DigitRows<kHigh, V> rows;
  count_block<V>(s, planes, part, rows);
  for (auto& row : rows.low) turn_digits(row);
  for (auto& row : rows.high) turn_digits(row);
  finish_rows(s, rows, part);
}

template <class V>
PHONEBIT_NOINLINE void run_bits(const ConvShape& s, const uint8_t* planes, const Part& part) {
  const PackedSums& layer = part.layer;
  LimitComparison<V> comparison(s, layer.borders.count(), layer.lanes() + part.first_group,
                                layer.digits(s, part.block));
  count_block<V>(s, planes, part, comparison);
  finish_bits(s, comparison.bits, part);
}

template <class V>
void run_block(const ConvShape& s, const uint8_t* planes, const Part& part) {
  if (part.sink.threshold_bits != nullptr)
    run_bits<V>(s, planes, part);
  else  // numbers, and a sign
    (window_positions(s) < 1 << 11 ? run_values<4, V> : run_values<8, V>)(s, planes, part);
}

void run(const ConvShape& s, const void* packed, const uint32_t*, const void* scratch,
         const OutputRange& range, const AccumulatorSink& sink) {
  if (range.pixel_begin >= range.pixel_end) return;
  const PackedSums layer(s, packed);
  const auto group_at = [&](int pixel) {
    return pixel / s.out_w * row_groups(s) + pixel % s.out_w / kGroupPixels;
  };
  const int end = group_at(range.pixel_end - 1) + 1;
  alignas(64) uint8_t planes[kMaxPlanesBytes];
  for (int first = group_at(range.pixel_begin), last; first < end; first = last) {
    const int tile = end - first > 32 ? tile_groups(s) : 32;
    last = first + tile < end ? first + tile : end;
    make_planes(s, (const char*)scratch, first, tile, planes);
    for (int block = range.block_begin; block < range.block_end; ++block) {
      const Part part = {layer, range, sink, first, last, block};
      (tile == 64 ? run_block<__m512i> : run_block<__m256i>)(s, planes, part);
    }
  }
}

}  // namespace

extern const BinaryConvKernel kSharedSumsConv_avx512 = {"bconv2d_shared_sums__avx512gfni",
                                                        packed_bytes,
                                                        pack_weights,
                                                        scratch_bytes,
                                                        prepare_rows,
                                                        prepare_input,
                                                        run};

}  // namespace phonebit::engine::cpu
