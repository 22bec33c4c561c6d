// Filters that share sums as they are packed, and the map as the planes that they add.
//
// Planes are vectors with a bit for each pixel. Scratch holds groups of 8 pixels as bytes: [y of the padded map]
// [column of the window][group][channel]. A group's pixels begin at x = 8 group + column. Byte i of a tile's plane is
// group first + i of such bytes.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "popcount_layout.inl"
#include "shared_sums_add.inl"
#include "shared_sums_shape.inl"

size_t scratch_bytes(const ConvShape& s) {
  return round_up_64((size_t)touched_rows(s) * s.kernel_w * row_groups(s) * plane_channels(s));
}

int prepare_rows(const ConvShape& s) { return touched_rows(s); }

void prepare_input(const ConvShape& s, const uint32_t* input, void* scratch, int row_begin, int row_end) {
  const int words_in = words(s.in_c), groups = row_groups(s);
  const int columns = groups * kGroupPixels + s.kernel_w - 1;
  alignas(64) uint32_t row[kMaxRowBytes / sizeof(uint32_t)];
  char* out = (char*)scratch + (size_t)row_begin * s.kernel_w * groups * plane_channels(s);
  for (int y = row_begin; y < row_end; ++y) {
    pad_row(s, input, y, columns, row);
    for (int x = 0; x < s.kernel_w; ++x) {
      for (int g = 0; g < groups; ++g) {
        const uint32_t* from = row + (g * kGroupPixels + x) * words_in;
        for (int i = 0; i < words_in; i += 2, from += 2, out += 64)
          _mm512_store_si512(out, bytes_of_positions(from, words_in, words_in - i));
      }
    }
  }
}

/// The planes of a tile of at most `tile` groups from `first` on, [column][channel], and the constants.
PHONEBIT_NOINLINE void make_planes(const ConvShape& s, const char* bytes, int first, int tile,
                                   uint8_t* planes) {
  const int groups = row_groups(s), last = touched_rows(s) * groups - 1;
  const int step = plane_step(s), end = plane_bytes(s, tile), channels = plane_channels(s);
  for (int begin = 0; begin < end; begin += 16) {
    const char* from[16];
    for (int i = 0; i < 16; ++i) {
      const int g = first + begin + i < last ? first + begin + i : last;
      from[i] = bytes + ((size_t)(g / groups) * s.kernel_w * groups + g % groups) * channels;
    }
    const bool is_half = end - begin < 16;  // what is beyond may be the next plane
    uint8_t* to = planes + begin;
    for (int x = 0; x < s.kernel_w; ++x) {
      for (int c = 0; c < channels; c += 64) {
        const size_t offset = (size_t)x * groups * channels + c;
        __m512i v[16];
        unroll<16>([&](int i) PHONEBIT_LAMBDA_INLINE { v[i] = _mm512_load_si512(from[i] + offset); });
        transpose_bytes(v);
        unroll<4>([&](auto part) PHONEBIT_LAMBDA_INLINE {
          unroll<16>([&](int i) PHONEBIT_LAMBDA_INLINE {
            const __m128i plane = _mm512_extracti32x4_epi32(v[i], part);
            if (is_half)
              _mm_storel_epi64((__m128i*)to, plane);
            else
              _mm_storeu_si128((__m128i*)to, plane);
            to += step;
          });
        });
      }
    }
  }
  __builtin_memset(planes + constants_offset(s), 0, 64);
  __builtin_memset(planes + constants_offset(s) + 64, 0xff, 64);
}

// Lists: which planes each group of filters adds, and in which order.

constexpr int kMaxFilters = 6;  // of a group

/// How many filters share sums: the longer the windows, the more classes pay. A block's last group has four.
int group_filters(const ConvShape& s) {
  return window_positions(s) < 1000 ? 4 : window_positions(s) < 2000 ? 5 : kMaxFilters;
}
int filters_from(const ConvShape& s, int channel) {
  const int left = kChannelBlock - channel % kChannelBlock;
  return left < group_filters(s) ? left : group_filters(s);
}
int group_count(const ConvShape& s) { return (kChannelBlock + group_filters(s) - 1) / group_filters(s); }

/// Of a block's lists: each has a head, and a length and up to 7 positions without effect for each of 2^F runs.
size_t block_entries(const ConvShape& s) {
  return (size_t)group_count(s) * (1 + window_positions(s) + (kUnit << group_filters(s)));
}

PHONEBIT_INLINE int filter_bit(const uint32_t* filter, int position) {
  return filter[position / 32] >> (position % 32) & 1;
}

/// The list of a group: whether sums have more than 8 digits, then for each class four runs: those in which the last
/// filter differs from the first, then the others; of each, those where the first filter is 0, then 1. A run is
/// [units][offsets of planes]. Returns its end.
uint16_t* pack_group(const ConvShape& s, const uint32_t* filters, int filter_count, uint16_t* out) {
  const int count = window_positions(s);
  const int last = 1 << (filter_count - 2);
  uint16_t* const head = out++;
  *head = 0;
  uint8_t patterns[kMaxSharedPositions];  // the first filter's bit, and which others differ from it
  for (int i = 0; i < count; ++i) {
    const int first = filter_bit(filters, i);
    int pattern = first;
    for (int f = 1; f < filter_count; ++f)
      pattern |= (filter_bit(filters + f * (count / 32), i) ^ first) << f;
    patterns[i] = (uint8_t)pattern;
  }
  for (int of_class = 0; of_class < last; ++of_class) {
    int in_class = 0;
    for (int run = 0; run < 4; ++run) {
      const int first = run % 2, pattern = (of_class | (run < 2 ? last : 0)) << 1 | first;
      uint16_t* const units = out++;
      int length = 0;
      for (int i = 0; i < count; ++i) {
        if (patterns[i] != pattern) continue;
        const int tap = i / s.in_c, plane = tap % s.kernel_w * plane_channels(s) + i % s.in_c;
        *out++ = (uint16_t)(plane * plane_step(s) + tap / s.kernel_w * row_groups(s));
        ++length;
      }
      in_class += length;
      for (; length % kUnit != 0; ++length) *out++ = (uint16_t)(constants_offset(s) + first * 64);
      *units = (uint16_t)(length / kUnit);
    }
    if (in_class > 255) *head = 1;
  }
  return out;
}

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

/// Where the digits of a channel go, the lowest first, to become one bit per pixel.
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

    /// `i`: a constant.
    PHONEBIT_INLINE void put(int i, V digit) {
      V limit = tables->digit(at + i);
      for (const LimitTable<V>* table = tables + 1; table != end; ++table) limit |= table->digit(at + i);
      if (i == kDigits - 1)  // the sign
        *to = ternary<0xe8>(digit, limit, below);
      else
        below = ternary<0x8e>(digit, limit, below);
    }
  };
  struct FirstNumber : Number {
    V* digits;

    PHONEBIT_INLINE void put(int i, V digit) {
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
