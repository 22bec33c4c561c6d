// u8 convolution by looking sums up. Five bytes of the map have 32 sums with signs, and a filter's five
// weights there are the number of one of them: the 32 sums are one vector of 16-bit words, a table, in which
// vpermw looks 32 filters up at once, for 160 multiply-accumulates where vpdpbusd has 64. AMD's processors do
// as many of either (Zen 5: two per cycle); Intel's do one vpermw in two cycles and have AMX.
//
// A cell is what a window moves on by, stride_h x stride_w pixels, and a window is a few cells, of which the
// last ones of a row and the last row may be cut short. The same tables are used by all filters and all windows
// that have the cell somewhere; no table has bytes on both sides of a cut. Bytes count as x - 128, so that 16
// bits hold the sums of 51 lookups, a segment.
//
// The map is worked on in strips of columns, so narrow that the tables of a row of windows stay in the first
// cache.
//
// Weights: [Cout/32][lookup][32 x u16 number of a sum].
// Source: own; sums looked up in tables as in T-MAC (Wei et al., 2024)
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after u8_conv.inl.
#pragma once

constexpr int kTableTaps = 5, kTableWords = 32;
constexpr int kLookupOffset = 128;
constexpr int kSegmentLookups = INT16_MAX / (kTableTaps * kLookupOffset);
constexpr int kMaxSegments = 4;
/// The register tile: 24 sums, a table, and the numbers of a group of vectors.
constexpr int kLookupSums = 24, kLookupVectors = 3, kMaxLookupPixels = 16;
template <int kVectors>
constexpr int kLookupPixels =
    kLookupSums / kVectors < kMaxLookupPixels ? kLookupSums / kVectors : kMaxLookupPixels;

/// Rows of a cell lie in the four parts of a vector, from which bytes are taken. The last byte is not one of
/// the map's: there is the offset.
constexpr int kCellRows = 4, kCellRowBytes = 15, kOffsetByte = 63;
/// Pairs of a table's bytes, each twice to be a 32-bit word; the sixth byte is the offset.
constexpr int kTablePairs = 3, kPatternVectors = 3, kMaxTables = kPatternVectors * kLanes / kTablePairs;
/// Tables of a strip, in a thread's stack.
constexpr int kStripTables = 640, kStripCells = 64;
/// A window's lookups, as often as it has rows of cells.
constexpr int kMaxPlaces = 1024;

/// How windows are made of cells, and cells of tables.
struct LookupShape {
  struct Table {
    int taps;
    bool below_cut, right_of_cut;  // absent in the last row, or in the last column, of a window's cells
    int row[kTableTaps], byte[kTableTaps];
  };
  int cells_h, cells_w;  // of a window
  int tables;            // of a cell
  int lookups;           // of a window
  Table table[kMaxTables];

  explicit LookupShape(const ConvShape& s)
      : cells_h((s.kernel_h + s.stride_h - 1) / s.stride_h),
        cells_w((s.kernel_w + s.stride_w - 1) / s.stride_w),
        tables(0),
        lookups(0) {
    const int cut_h = s.kernel_h - (cells_h - 1) * s.stride_h;
    const int cut_bytes = (s.kernel_w - (cells_w - 1) * s.stride_w) * s.in_c;
    const int row_bytes = s.stride_w * s.in_c;
    add_tables(0, cut_h, 0, cut_bytes, false, false);
    add_tables(0, cut_h, cut_bytes, row_bytes, false, true);
    add_tables(cut_h, s.stride_h, 0, cut_bytes, true, false);
    add_tables(cut_h, s.stride_h, cut_bytes, row_bytes, true, true);
    for_each_lookup([&](int, int, const Table&, int) { lookups++; });
  }

  /// Calls visit(cell row, cell column, table, its number in the cell) in the order of the packed weights.
  template <class Visit>
  void for_each_lookup(const Visit& visit) const {
    for (int y = 0; y < cells_h; y++) {
      for (int x = 0; x < cells_w; x++) {
        for (int i = 0; i < tables; i++) {
          const bool absent =
              (table[i].below_cut && y == cells_h - 1) || (table[i].right_of_cut && x == cells_w - 1);
          if (!absent) visit(y, x, table[i], i);
        }
      }
    }
  }

  int segments() const { return (lookups + kSegmentLookups - 1) / kSegmentLookups; }

  /// Tables of a row of cells that so many windows have.
  int row_tables(int pixels) const { return (pixels + cells_w - 1) * tables; }

 private:
  void add_tables(int row_begin, int row_end, int byte_begin, int byte_end, bool below, bool right) {
    int taps = kTableTaps;
    for (int row = row_begin; row < row_end; row++) {
      for (int byte = byte_begin; byte < byte_end; byte++, taps++) {
        if (taps == kTableTaps) {
          if (tables == kMaxTables) return;  // see lookup_supports
          table[tables++] = {0, below, right, {}, {}};
          taps = 0;
        }
        Table& last = table[tables - 1];
        last.row[taps] = row, last.byte[taps] = byte;
        last.taps = taps + 1;
      }
    }
  }
};

static int lookup_vectors(const ConvShape& s) { return (s.out_c + kTableWords - 1) / kTableWords; }

/// The tables of a tile of kMaxLookupPixels must fit. Where this is faster than dot products, by operations
/// and what they were measured to cost on Zen 5, in eighths of a cycle per pixel: 6 per lookup of a vector, 96 to
/// finish one, 18 per table; 4 per group of taps of 16 filters.
static bool lookup_supports(const ConvShape& s) {
  static const bool fast = __builtin_cpu_is("amd");
  if (!fast || s.dilation_h != 1 || s.dilation_w != 1 || s.stride_h > kCellRows ||
      s.stride_w * s.in_c > kCellRowBytes)
    return false;
  const LookupShape lookup(s);
  if (lookup.tables == kMaxTables || lookup.segments() > kMaxSegments ||
      lookup.lookups * lookup.cells_h > kMaxPlaces || lookup.cells_w + kMaxLookupPixels > kStripCells ||
      lookup.cells_h * lookup.row_tables(kMaxLookupPixels) > kStripTables)
    return false;
  const int64_t vectors = lookup_vectors(s), dot_vectors = (s.out_c + kLanes - 1) / kLanes;
  return (6 * lookup.lookups + 96) * vectors + 18 * lookup.tables < 4 * tap_groups(s) * dot_vectors;
}

static size_t lookup_packed_bytes(const ConvShape& s) {
  const size_t numbers = (size_t)LookupShape(s).lookups * lookup_vectors(s) * kTableWords;
  return u8_constants_bytes(s) + u8_limits_bytes(s) + numbers * sizeof(uint16_t);
}

static void lookup_pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                                void* packed) {
  u8_pack_constants(s, weights, thresholds, packed, kLookupOffset);
  const LookupShape lookup(s);
  const size_t filter_words = (size_t)s.kernel_h * s.kernel_w * words(s.in_c);
  uint16_t* to = (uint16_t*)((char*)packed + u8_constants_bytes(s) + u8_limits_bytes(s));
  for (int vector = 0; vector < lookup_vectors(s); vector++) {
    lookup.for_each_lookup([&](int y, int x, const LookupShape::Table& table, int) {
      for (int c = vector * kTableWords; c < (vector + 1) * kTableWords; c++) {
        int number = 0;
        for (int i = 0; c < s.out_c && i < table.taps; i++) {
          const int ky = y * s.stride_h + table.row[i], byte = x * s.stride_w * s.in_c + table.byte[i];
          const int weight = u8_weight(s, weights + c * filter_words, ky, byte / s.in_c, byte % s.in_c);
          number |= (weight > 0) << i;
        }
        *to++ = (uint16_t)number;
      }
    });
  }
}

/// Makes the tables of cells.
class TableMaker {
 public:
  explicit TableMaker(const LookupShape& lookup) : tables_(lookup.tables) {
    alignas(64) int8_t signs[kTablePairs][2 * kTableWords];
    for (int number = 0; number < kTableWords; number++) {
      int sum = 0;
      for (int i = 0; i < kTableTaps; i++) {
        const int sign = number >> i & 1 ? 1 : -1;
        signs[i / 2][2 * number + i % 2] = (int8_t)sign;
        sum += sign;
      }
      signs[kTablePairs - 1][2 * number + 1] = (int8_t)-sum;
    }
    for (int i = 0; i < kTablePairs; i++) signs_[i] = _mm512_load_si512(signs[i]);
    alignas(64) uint8_t pattern[kPatternVectors * sizeof(__m512i)];
    __builtin_memset(pattern, kOffsetByte,
                     sizeof pattern);  // bytes that a table lacks are 0 with their offset
    for (int t = 0; t < lookup.tables; t++) {
      for (int i = 0; i < lookup.table[t].taps; i++) {
        uint8_t* const pair = pattern + (t * kTablePairs + i / 2) * 4;
        pair[i % 2] = pair[2 + i % 2] = (uint8_t)(lookup.table[t].row[i] * 16 + lookup.table[t].byte[i]);
      }
    }
    for (int i = 0; i < kPatternVectors; i++) pattern_[i] = _mm512_load_si512(pattern + i * sizeof(__m512i));
  }

  /// The tables of `count` cells in a row. A cell begins cell_bytes after the one before; its rows begin at
  /// cell, cell + pitch, ..., of 16 readable bytes each.
  void make(const uint8_t* cell, size_t pitch, int cell_bytes, int count, __m512i* tables) const {
    // One long loop for all tables: a short one for each cell would wait for the pairs and mispredict its
    // end.
    int32_t pairs[(kStripTables + kMaxTables) * kTablePairs];
    const int cell_pairs = tables_ * kTablePairs;
    for (int32_t* to = pairs; to < pairs + count * cell_pairs; to += cell_pairs, cell += cell_bytes) {
      __m512i bytes = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i*)cell));
      bytes = _mm512_inserti32x4(bytes, _mm_loadu_si128((const __m128i*)(cell + pitch)), 1);
      bytes = _mm512_inserti32x4(bytes, _mm_loadu_si128((const __m128i*)(cell + 2 * pitch)), 2);
      bytes = _mm512_inserti32x4(bytes, _mm_loadu_si128((const __m128i*)(cell + 3 * pitch)), 3);
      bytes = _mm512_mask_mov_epi8(bytes, 1ull << kOffsetByte, _mm512_set1_epi8((char)kLookupOffset));
      unroll<kPatternVectors>([&](int i) PHONEBIT_LAMBDA_INLINE {
        _mm512_storeu_si512(to + i * kLanes, _mm512_permutexvar_epi8(pattern_[i], bytes));
      });
    }
    // Copies: the compiler must assume that stores of tables change them.
    const __m512i ab_signs = signs_[0], cd_signs = signs_[1], e_signs = signs_[2];
    const int32_t* pair = pairs;
    for (int i = 0; i < count * tables_; i++, pair += kTablePairs) {
      const __m512i ab = _mm512_maddubs_epi16(_mm512_set1_epi32(pair[0]), ab_signs);
      const __m512i cd = _mm512_maddubs_epi16(_mm512_set1_epi32(pair[1]), cd_signs);
      const __m512i e = _mm512_maddubs_epi16(_mm512_set1_epi32(pair[2]), e_signs);
      tables[i] = _mm512_add_epi16(_mm512_add_epi16(ab, cd), e);
    }
  }

 private:
  __m512i signs_[kTablePairs], pattern_[kPatternVectors];
  int tables_;
};

/// sums[pixel][vector] of `count` lookups, in 16 bits. Pixel p's table of lookup l is
/// tables[places[l] + p * step], its filters' numbers are numbers[vector * vector_step + l].
template <int kVectors>
PHONEBIT_NOINLINE void look_up(const __m512i* tables, size_t step, const int* places, int count,
                               const __m512i* numbers, size_t vector_step, __m512i* sums) {
  constexpr int kPixels = kLookupPixels<kVectors>;
  __m512i sum[kPixels][kVectors] = {};
  for (int l = 0; l < count; l++) {
    const __m512i* const table = tables + places[l];
    __m512i number[kVectors];
    unroll<kVectors>([&](int v) PHONEBIT_LAMBDA_INLINE { number[v] = numbers[v * vector_step + l]; });
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
      __m512i words = table[p * step];
      // gcc would read the table once for each vector, and look everything up before it adds anything.
      asm volatile("" : "+v"(words));
      unroll<kVectors>([&](int v) PHONEBIT_LAMBDA_INLINE {
        sum[p][v] = _mm512_add_epi16(sum[p][v], _mm512_permutexvar_epi16(number[v], words));
        asm volatile("" : "+v"(sum[p][v]));
      });
    });
  }
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](int v) PHONEBIT_LAMBDA_INLINE { sums[p * kVectors + v] = sum[p][v]; });
  });
}

/// kVectors vectors of channels from vector `first` on.
template <int kVectors>
class LookupGroup {
 public:
  LookupGroup(const U8Block& work, const LookupShape& lookup, const __m512i* numbers, int first)
      : work_(work), s_(work.s), lookup_(lookup), maker_(lookup), numbers_(numbers), first_(first) {}

  void run(const uint8_t* input, const OutputRange& range) {
    int max_pixels = kPixels;  // of a strip
    while (max_pixels < s_.out_w && max_pixels + kPixels + lookup_.cells_w <= kStripCells &&
           lookup_.cells_h * lookup_.row_tables(max_pixels + kPixels) <= kStripTables)
      max_pixels += kPixels;
    for (int x = 0; x < s_.out_w; x += max_pixels)
      run_strip(input, range, x, s_.out_w - x < max_pixels ? s_.out_w - x : max_pixels, max_pixels);
  }

 private:
  static constexpr int kPixels = kLookupPixels<kVectors>;

  /// Output columns [x, x + count) of the range. Rows of tables are in slots for `max_pixels` pixels, in turn.
  void run_strip(const uint8_t* input, const OutputRange& range, int x, int count, int max_pixels) {
    const int row_tables = lookup_.row_tables(max_pixels), rows = lookup_.cells_h;
    int places[kMaxPlaces];  // for windows that begin in each of the slots
    for (int slot = 0; slot < rows; slot++) {
      int* place = places + slot * lookup_.lookups;
      lookup_.for_each_lookup([&](int y, int x, const LookupShape::Table&, int table) {
        *place++ = (slot + y) % rows * row_tables + x * lookup_.tables + table;
      });
    }
    int made = range.pixel_begin / s_.out_w;
    for (int y = made; y * s_.out_w < range.pixel_end; y++) {
      const int row = y * s_.out_w;
      const int begin = x > range.pixel_begin - row ? x : range.pixel_begin - row;
      const int end = x + count < range.pixel_end - row ? x + count : range.pixel_end - row;
      if (begin >= end) continue;
      for (made = made < y ? y : made; made < y + rows; made++)
        make_row(input, made, x, count, tables_ + made % rows * row_tables);
      for (int at = begin; at < end; at += kPixels)
        run_tile(places + y % rows * lookup_.lookups, y, at, at - x, end - at < kPixels ? end - at : kPixels);
    }
  }

  /// The tables of row `cell_row` of cells that `count` windows from column x on have.
  void make_row(const uint8_t* input, int cell_row, int x, int count, __m512i* tables) const {
    constexpr size_t kPitch = kStripCells * (kCellRowBytes + 1);
    uint8_t rows[kCellRows * kPitch + 16];
    const int cells = count + lookup_.cells_w - 1, cell_bytes = s_.stride_w * s_.in_c;
    const int first = (x * s_.stride_w - s_.pad_left) * s_.in_c, row_bytes = s_.in_w * s_.in_c;
    const int begin = first < 0 ? -first : 0;
    const int end = row_bytes - first < cells * cell_bytes ? row_bytes - first : cells * cell_bytes;
    for (int i = 0; i < kCellRows; i++) {
      uint8_t* const to = rows + i * kPitch;
      __builtin_memset(to, 0, cells * cell_bytes + 16);
      const int in_y = cell_row * s_.stride_h - s_.pad_top + i;
      if (i < s_.stride_h && in_y >= 0 && in_y < s_.in_h && begin < end)
        __builtin_memcpy(to + begin, input + (size_t)in_y * row_bytes + first + begin, end - begin);
    }
    maker_.make(rows, kPitch, cell_bytes, cells, tables);
  }

  /// Output pixels (y, x) to (y, x + count), pixels from `at` on of the strip.
  void run_tile(const int* places, int y, int x, int at, int count) const {
    __m512i sums[kMaxSegments][kPixels * kVectors];
    const int segments = lookup_.segments();
    const size_t vector_step = lookup_.lookups;
    for (int i = 0; i < segments; i++) {
      const int begin = lookup_.lookups * i / segments, end = lookup_.lookups * (i + 1) / segments;
      look_up<kVectors>(tables_ + at * lookup_.tables, lookup_.tables, places + begin, end - begin,
                        numbers_ + begin, vector_step, sums[i]);
    }
    alignas(64) float values[kPixels * kVectors * kTableWords];
    const int pixel = y * s_.out_w + x, channel = first_ * kTableWords;
    const int32_t* const row_limits = work_.limits + work_.constants.row_offsets()[y] + channel;
    const int* const columns = work_.constants.column_offsets(s_) + x;
    for (int p = 0; p < count; p++) {
      const int32_t* const limits = row_limits + columns[p];
      uint32_t* const bits = work_.sink.threshold_bits ? work_.sink.threshold_bits +
                                                             (int64_t)(pixel + p) * work_.pixel_words + first_
                                                       : nullptr;
      unroll<kVectors>([&](int v) PHONEBIT_LAMBDA_INLINE {
        IntVector sum[2] = {};
        for (int i = 0; i < segments; i++) {
          const __m512i words = sums[i][p * kVectors + v];
          sum[0] += (IntVector)_mm512_cvtepi16_epi32(_mm512_castsi512_si256(words));
          sum[1] += (IntVector)_mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(words, 1));
        }
        if (bits) {
          bits[v] = u8_threshold_bits(sum, limits + v * kTableWords);
        } else {
          unroll<2>([&](int half) PHONEBIT_LAMBDA_INLINE {
            const int c = v * kTableWords + half * kLanes;
            store(values + p * kVectors * kTableWords + c,
                  u8_accumulator(sum[half], work_.constants.multiplier, limits + c));
          });
        }
      });
    }
    if (work_.sink.threshold_bits) return;
    const int left = s_.out_c - channel,
              channels = left < kVectors * kTableWords ? left : kVectors * kTableWords;
    finish_pixels(*work_.sink.epilogue, {values, kVectors * kTableWords}, pixel, count, channel, channels);
  }

  const U8Block& work_;
  const ConvShape& s_;
  const LookupShape& lookup_;
  const TableMaker maker_;
  const __m512i* numbers_;  // of the first vector
  int first_;
  // Of what a tile reads after the strip's last window nothing is used.
  alignas(64) __m512i tables_[kStripTables + kPixels * kMaxTables];
};

template <int kVectors>
PHONEBIT_NOINLINE void lookup_group(const U8Block& work, const LookupShape& lookup, const __m512i* numbers,
                                    int first, const uint8_t* input, const OutputRange& range) {
  LookupGroup<kVectors>(work, lookup, numbers, first).run(input, range);
}

static void lookup_run(const ConvShape& s, const void* packed, const uint8_t* input, const void* scratch,
                       const OutputRange& range, const AccumulatorSink& sink) {
  const LookupShape lookup(s);
  const U8Block work(s, packed, scratch, sink, 0);
  const __m512i* numbers = (const __m512i*)((const char*)packed + u8_constants_bytes(s) + u8_limits_bytes(s));
  constexpr int kBlockVectors = kChannelBlock / kTableWords;
  const int vectors = lookup_vectors(s);
  const int end = range.block_end * kBlockVectors < vectors ? range.block_end * kBlockVectors : vectors;
  for (int first = range.block_begin * kBlockVectors, count; first < end; first += count) {
    const int left = end - first;
    count = left == 4 ? 2 : left < kLookupVectors ? left : kLookupVectors;
    const auto group = count == 3 ? lookup_group<3> : count == 2 ? lookup_group<2> : lookup_group<1>;
    group(work, lookup, numbers + (size_t)first * lookup.lookups, first, input, range);
  }
}

static size_t lookup_no_scratch(const ConvShape&) { return 0; }
static int lookup_no_rows(const ConvShape&) { return 0; }
static void lookup_prepare_nothing(const ConvShape&, const uint8_t*, void*, int, int) {}

constexpr U8ConvKernel kU8ConvLookup = {
    "u8conv_lookup",   lookup_supports, lookup_packed_bytes,    lookup_pack_weights,
    lookup_no_scratch, lookup_no_rows,  lookup_prepare_nothing, 32,
    lookup_run,
};
