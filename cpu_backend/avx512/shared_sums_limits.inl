// Thresholds: numbers are compared with limits while they are planes, one digit of all pixels at a time.
//
// From the lowest digit on, x < l is decided by the digit, or where x = l, by what is below:
//   below = majority(~x, l, below),
// one ternary logic. A sign counts the other way round: majority(x, ~l, below). So limits are stored with
// 2^(digits - 1) added, which inverts their sign.
//
// Limits differ by border class, so l is a plane, too. A table has it for three classes: plane i has the lanes of
// those classes of which i has the bit. Lanes of other classes are 0, so l is the OR of the tables that a tile
// needs: one or two where a row has three classes.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "popcount_layout.inl"
#include "shared_sums_add.inl"
#include "shared_sums_shape.inl"

constexpr int kNumberDigits = 13;  // of d_f - n_f, with the sign
static_assert(kMaxSharedPositions + 1 < 1 << (kNumberDigits - 1));

/// The limit of d_f - n_f: bit = d_f < limit. One above all d_f stands for all larger ones.
static inline uint32_t stored_limit(const ConvShape& s, int32_t base, int32_t threshold, int differing) {
  const uint32_t max_limit = (uint32_t)window_positions(s) + 1;
  return popcount_limit(base, threshold, max_limit) - (uint32_t)differing + (1u << (kNumberDigits - 1));
}

constexpr int kTableClasses = 3, kMaxTables = kMaxBorderClasses / kTableClasses;
static inline int table_count(int classes) { return (classes + kTableClasses - 1) / kTableClasses; }

/// Lanes of a class: a byte for each group of the map, and what a tile's vector may reach beyond.
static inline int lanes_step(const ConvShape& s) { return s.out_h * row_groups(s) + 64; }
static inline size_t lanes_bytes(const ConvShape& s, int classes) {
  return round_up_64((size_t)lanes_step(s) * kTableClasses * table_count(classes));
}

static inline void pack_lanes(const ConvShape& s, const BorderTable& borders, uint8_t* lanes) {
  __builtin_memset(lanes, 0, lanes_bytes(s, borders.count()));
  for (int y = 0; y < s.out_h; ++y) {
    for (int x = 0; x < s.out_w; ++x) {
      const int group = y * row_groups(s) + x / kGroupPixels;
      lanes[borders.class_of(s, y, x) * lanes_step(s) + group] |= (uint8_t)(1 << x % kGroupPixels);
    }
  }
}

/// Of a block and a table: [channel][digit of the limit], 8 times which plane.
constexpr int kDigitsStep = 16, kTableDigits = kChannelBlock * kDigitsStep;

static inline void pack_digits(const uint32_t* limits, int classes, uint8_t* digits) {
  __builtin_memset(digits, 0, (size_t)table_count(classes) * kTableDigits);
  for (int i = 0; i < classes; ++i) {
    uint8_t* to = digits + i / kTableClasses * kTableDigits;
    for (int c = 0; c < kChannelBlock; ++c, ++limits, to += kDigitsStep)
      for (int d = 0; d < kNumberDigits; ++d)
        to[d] |= (uint8_t)((*limits >> d & 1) << (3 + i % kTableClasses));
  }
}

template <class V>
struct LimitTable {
  V planes[1 << kTableClasses];
  const uint8_t* digits;

  /// `at`: of a channel and digit.
  PHONEBIT_INLINE V digit(int at) const {
    return load<V>((const char*)planes + digits[at] * (sizeof(V) / 8));
  }
};

/// Where the digits of a channel go, the lowest first, to become a plane of bits.
template <class V>
struct LimitComparison {
  static constexpr int kDigits = kNumberDigits;
  LimitTable<V> tables[kMaxTables];  // of the classes that the tile has lanes of
  int count = 0;
  V first_digits[kDigits];
  V bits[kChannelBlock / 8][8];

  /// `lanes`: of the tile's first group.
  LimitComparison(const ConvShape& s, int classes, const uint8_t* lanes, const uint8_t* digits) {
    for (int i = 0; i < table_count(classes); ++i, digits += kTableDigits) {
      V* const planes = tables[count].planes;
      planes[0] = V{};
      for (int j = 0; j < kTableClasses; ++j, lanes += lanes_step(s)) {
        const V mask = load<V>(lanes);
        for (int k = 0; k < 1 << j; ++k) planes[k | 1 << j] = planes[k] | mask;
      }
      tables[count].digits = digits;
      if (!is_zero(planes[(1 << kTableClasses) - 1])) ++count;
    }
  }

  struct Number {
    const LimitTable<V>*tables, *end;
    int at;
    V* to;
    V below;

    template <int kAt>
    PHONEBIT_INLINE void put(Index<kAt>, V digit) {
      constexpr bool kIsSign = kAt == kDigits - 1;
      V limit = tables->digit(at + kAt);
      for (const LimitTable<V>* table = tables + 1; table != end; ++table) limit |= table->digit(at + kAt);
      below = ternary<kIsSign ? 0xe8 : 0x8e>(digit, limit, below);
      if constexpr (kIsSign) *to = below;
    }
  };
  struct FirstNumber : Number {
    V* digits;

    template <int kAt>
    PHONEBIT_INLINE void put(Index<kAt> i, V digit) {
      digits[i] = digit;
      Number::put(i, digit);
    }
    PHONEBIT_INLINE V digit(int i) const { return digits[i]; }
  };

  PHONEBIT_INLINE Number number(int channel) {
    return {tables, tables + count, channel * kDigitsStep, &bits[channel / 8][channel % 8], V{}};
  }
  PHONEBIT_INLINE FirstNumber first_number(int channel) { return {number(channel), first_digits}; }
};
