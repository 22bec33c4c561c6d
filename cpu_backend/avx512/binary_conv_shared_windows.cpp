// @kernel   bconv2d_shared_windows__avx512gfni   binary convolution, threshold or epilogue fused
// @math     d_p = n_p + S - 2 D_p, counted by full adders, see below;
//           acc = base_M - 2 d (border_classes.inl)
// @in       packed bits; positions of a row's windows, sorted, in scratch
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [Cout/512][tap][Cin][512 bits]
// @source   own; full adders after Harley and Seal
//
// The other way round than binary_conv_shared_sums.cpp, for small maps of many filters: lanes are filters,
// a bit each, and a plane holds the weights of one position (tap and channel) of 512 filters. A group of
// windows x_0 ... x_F-1, of pixels next to each other, shares sums. Let e_p be the positions at which x_p
// differs from x_0, and
//   S = sum of popcount(w ^ x_0) over all positions,   D_p = the same over e_p,   n_p = |e_p|.
// Then d_p = sum of popcount(w ^ x_p) = (S - D_p) + (n_p - D_p). A position is of one of 2^(F-1) classes,
// by the windows that differ from x_0 there; each class is summed once.
//
// Classes follow from the map, so positions are sorted for every image: once per row of the map and group of
// columns, for all rows of windows that reach it.
#include "select.h"
#include "simd/avx512.h"

namespace phonebit::engine::cpu {
namespace {

#include "popcount_layout.inl"
#include "portable/epilogue.inl"
#include "shared_sums_add.inl"
#include "shared_windows_shape.inl"

/// Classes with two bits more: whether the last window does not differ, and that of x_0; add_classes accepts
/// runs of positions in this order.
constexpr int kMaxRuns = 1 << kMaxWindows;
int run_count(const ConvShape& s) { return 1 << group_windows(s); }

int positions(const ConvShape& s) { return s.kernel_h * row_positions(s); }

constexpr int kPlaneBytes = kLaneFilters / 8, kLaneBlocks = kLaneFilters / kChannelBlock;
static_assert(kLaneBlocks == kSharedWindowBlocks);

/// Planes, then one of 0 and one of 1.
size_t lanes_bytes(const ConvShape& s) { return (size_t)(positions(s) + 2) * kPlaneBytes; }

size_t packed_bytes(const ConvShape& s) {
  return round_up_64(head_bytes(s, border_class_count(s))) + lanes_bytes(s) * (s.out_c / kLaneFilters);
}

void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds, void* packed) {
  pack_limits(s, weights, thresholds, packed);
  const int filter_words = positions(s) / 32;
  uint8_t* planes = (uint8_t*)PackedLayer(s, packed).weights;
  for (int first = 0; first < s.out_c; first += kLaneFilters, planes += lanes_bytes(s)) {
    for (int eight = 0; eight < kPlaneBytes; ++eight) {
      const uint32_t* const from = weights + (size_t)(first + 8 * eight) * filter_words;
      uint8_t* to = planes + eight;
      for (int w = 0; w < filter_words; w += 2) {
        alignas(64) uint8_t bytes[64];
        const int left = filter_words - w;
        _mm512_store_si512(bytes, bytes_of_positions(from + w, filter_words, left));
        for (int i = 0; i < (left > 1 ? 64 : 32); ++i, to += kPlaneBytes) *to = bytes[i];
      }
    }
    __builtin_memset(planes + (size_t)positions(s) * kPlaneBytes, 0, kPlaneBytes);
    __builtin_memset(planes + (size_t)(positions(s) + 1) * kPlaneBytes, 0xff, kPlaneBytes);
  }
}

/// Positions of a group in a row of the map, by run.
struct SortedRow {
  uint16_t differing[8];          // n_p
  uint16_t begins[kMaxRuns + 8];  // of each run, and the end

  /// Column of the window * Cin + channel.
  uint16_t* entries() { return (uint16_t*)(this + 1); }
};
constexpr int kSortedParts = 4;  // of 1, 2, 4 and 8 the fastest
constexpr int kCopied = 32;      // entries; what is read beyond the last ones is not used

size_t sorted_bytes(const ConvShape& s) {
  return round_up_64(sizeof(SortedRow) + sizeof(uint16_t) * (row_positions(s) + kCopied));
}
SortedRow& sorted_row(const ConvShape& s, const void* scratch, int y, int group) {
  return *(SortedRow*)((char*)scratch + sorted_bytes(s) * ((size_t)y * window_groups(s) + group));
}

size_t scratch_bytes(const ConvShape& s) { return sorted_bytes(s) * touched_rows(s) * window_groups(s); }
int prepare_rows(const ConvShape& s) { return touched_rows(s); }

/// Takes the bits of 8 pixels to the number of a run: bit 0 x_0, bit 1 whether the last window is equal, then
/// whether the others differ: bit p + 1.
constexpr int kEqualBit = 2;
long long run_matrix(int windows) {
  unsigned long long rows = 1ull << 56 | (unsigned long long)(1 << (windows - 1) | 1) << 48;
  for (int p = 1; p < windows - 1; ++p) rows |= (unsigned long long)(1 << p | 1) << (48 - 8 * p);
  return (long long)rows;
}

/// A row of padding: one run. Without this special case 7x7 maps would be 6 % slower.
void sort_padding(const ConvShape& s, SortedRow& to) {
  uint16_t* const entries = to.entries();
  const int run = kEqualBit + (s.pad_value == 1), count = row_positions(s);
  for (int i = 0; i <= run_count(s); ++i) to.begins[i] = (uint16_t)(i > run ? count : 0);
  for (int i = 0; i < count; ++i) entries[i] = (uint16_t)i;
}

void sort_row(const uint8_t* runs, int count, int run_end, SortedRow& to) {
  uint16_t* const entries = to.entries();
  // Several parts at a time: the next run may be the same one, whose end has just been written.
  uint16_t ends[kMaxRuns][kSortedParts] = {};
  const int part = count / kSortedParts;
  for (int i = 0; i < part; ++i)
    unroll<kSortedParts>([&](int k) PHONEBIT_LAMBDA_INLINE { ++ends[runs[i + k * part]][k]; });
  uint16_t end = 0;
  for (int run = 0; run < run_end; ++run) {
    to.begins[run] = end;
    unroll<kSortedParts>([&](int k) PHONEBIT_LAMBDA_INLINE {
      const uint16_t length = ends[run][k];
      ends[run][k] = end;
      end = (uint16_t)(end + length);
    });
  }
  to.begins[run_end] = end;
  for (int i = 0; i < part; ++i)
    unroll<kSortedParts>([&](int k) PHONEBIT_LAMBDA_INLINE {
      entries[ends[runs[i + k * part]][k]++] = (uint16_t)(i + k * part);
    });
}

void prepare_input(const ConvShape& s, const uint32_t* input, void* scratch, int row_begin, int row_end) {
  const int words_in = words(s.in_c), windows = group_windows(s), columns = group_columns(s);
  const __m512i matrix = _mm512_set1_epi64(run_matrix(windows));
  alignas(64) uint32_t row[kMaxGroupRowBytes / sizeof(uint32_t)];
  alignas(64) uint8_t runs[kMaxWindowPositions + 64];
  for (int y = row_begin; y < row_end; ++y) {
    const bool is_inside = pad_row(s, input, y, columns, row);
    for (int g = 0; g < window_groups(s); ++g) {
      SortedRow& to = sorted_row(s, scratch, y, g);
      __builtin_memset(to.differing, 0, sizeof to.differing);
      if (!is_inside) {
        sort_padding(s, to);
        continue;
      }
      uint8_t* out = runs;
      for (int x = 0; x < s.kernel_w; ++x, out += s.in_c) {
        const uint32_t* const from = row + (g * windows * s.stride_w + x * s.dilation_w) * words_in;
        for (int i = 0; i < words_in; i += 2) {
          const __m512i bits = bytes_of_positions(from + i, s.stride_w * words_in, words_in - i);
          const __m512i run = _mm512_gf2p8affine_epi64_epi8(bits, matrix, kEqualBit);
          _mm512_storeu_si512(out + 32 * i, run);
          const auto count = [&](int p, __mmask64 differs) PHONEBIT_LAMBDA_INLINE {
            to.differing[p] = (uint16_t)(to.differing[p] + __builtin_popcountll(differs));
          };
          for (int p = 1; p < windows - 1; ++p)
            count(p, _mm512_test_epi8_mask(run, _mm512_set1_epi8((char)(2 << p))));
          count(windows - 1, _mm512_testn_epi8_mask(run, _mm512_set1_epi8(kEqualBit)));
        }
      }
      sort_row(runs, row_positions(s), run_count(s), to);
    }
  }
}

/// A group's positions by run, as add_classes accepts them.
struct GroupList {
  uint32_t differing[8];  // n_p
  bool is_long;           // a class has more than 255 positions
  uint16_t entries[kMaxWindowPositions + kMaxRuns * (kUnit + 1) + kCopied];

  GroupList(const ConvShape& s, const void* scratch, int y, int group) : differing{}, is_long(false) {
    SortedRow* rows[kMaxKernelRows];
    for (int ky = 0; ky < s.kernel_h; ++ky) {
      rows[ky] = &sorted_row(s, scratch, y * s.stride_h + ky * s.dilation_h, group);
      for (int p = 0; p < group_windows(s); ++p) differing[p] += rows[ky]->differing[p];
    }
    const int in_row = row_positions(s);
    uint16_t* out = entries;
    int in_class = 0;
    for (int run = 0; run < run_count(s); ++run) {
      uint16_t* const units = out++;
      uint16_t* const begin = out;
      for (int ky = 0; ky < s.kernel_h; ++ky) {
        const __m512i first = _mm512_set1_epi16((short)(ky * in_row));
        const uint16_t* const from = rows[ky]->entries() + rows[ky]->begins[run];
        const int count = rows[ky]->begins[run + 1] - rows[ky]->begins[run];
        int i = 0;
        do store(out + i, _mm512_add_epi16(load<__m512i>(from + i), first));
        while ((i += kCopied) < count);
        out += count;
      }
      in_class = (int)(out - begin) + (run % 4 == 0 ? 0 : in_class);
      is_long = is_long || in_class > 255;
      store(out, _mm_set1_epi16((short)(s.kernel_h * in_row + run % 2)));
      *units = (uint16_t)((out - begin + kUnit - 1) / kUnit);
      out = begin + *units * kUnit;
    }
  }
};

/// Digits of the windows of a group, then their numbers.
struct WindowDigits {
  static constexpr int kDigits = 16;
  __m512i low[kMaxWindows][8], high[kMaxWindows][8];

  PHONEBIT_INLINE auto number(int window) { return KeptNumber(low[window], high[window]); }
  PHONEBIT_INLINE auto first_number(int window) { return number(window); }

  /// d_p - n_p of filters 16 i on.
  PHONEBIT_INLINE __m512i read(int window, int i) const {
    const int at = i % 8 * 4 + i / 8;
    const __m128i below = _mm_load_si128((const __m128i*)low[window] + at);
    const __m128i above = _mm_load_si128((const __m128i*)high[window] + at);
    return _mm512_or_epi32(_mm512_slli_epi32(_mm512_cvtepi8_epi32(above), 8), _mm512_cvtepu8_epi32(below));
  }
};

template <int kDigits, class V>
PHONEBIT_NOINLINE void add_group(const uint8_t* planes, const GroupList& list, int windows,
                                 WindowDigits& rows) {
  ClassSums<kDigits, V> sums[1 << (kMaxWindows - 2)];
  add_classes<kPlaneBytes>(planes, list.entries, 1 << (windows - 2), sums);
  if (windows == 4) put_digits<4>(sums, 0, rows);
  if (windows == 5) put_digits<5>(sums, 0, rows);
  if (windows == 6) put_digits<6>(sums, 0, rows);
  if (windows == 7) put_digits<7>(sums, 0, rows);
}

/// Blocks [block, end) of the filters of a vector, for the windows [begin, window_end) of the group at (y,
/// x).
struct Part {
  const PackedLayer& layer;
  const AccumulatorSink& sink;
  int block, end;
  int y, x, begin, window_end;
};

PHONEBIT_NOINLINE void run_group(const ConvShape& s, const uint8_t* planes, const GroupList& list,
                                 const Part& part) {
  constexpr int kVectors = kChannelBlock / 16;
  alignas(64) WindowDigits rows;
  alignas(64) float values[kMaxWindows][kChannelBlock];
  (list.is_long ? add_group<14, __m512i> : add_group<8, __m512i>)(planes, list, group_windows(s), rows);
  for (int p = part.begin; p < part.window_end; ++p) turn_digits(rows.low[p]), turn_digits(rows.high[p]);
  const int first = part.y * s.out_w + part.x;
  for (int block = part.block; block < part.end; ++block) {
    const uint32_t* const head = part.layer.block_head(block);
    for (int p = part.begin; p < part.window_end; ++p) {
      const uint32_t* const limits =
          head + part.layer.borders.class_of(s, part.y, part.x + p) * kChannelBlock;
      const __m512i differing = _mm512_set1_epi32((int)list.differing[p]);
      __m512i counts[kVectors];
      unroll<kVectors>([&](int q) PHONEBIT_LAMBDA_INLINE {
        counts[q] = _mm512_add_epi32(rows.read(p, block % kLaneBlocks * kVectors + q), differing);
      });
      if (part.sink.threshold_bits == nullptr) {
        store_values(counts, limits, values[p]);
        continue;
      }
      uint32_t* const to = part.sink.threshold_bits + (size_t)(first + p) * part.sink.pixel_words;
      store_bits(counts, limits, to + block * (kChannelBlock / 32), kChannelBlock / 32);
    }
    if (part.sink.threshold_bits == nullptr)
      apply_epilogue(*part.sink.epilogue, values[part.begin], first + part.begin,
                     part.window_end - part.begin, block * kChannelBlock, kChannelBlock);
  }
}

void run(const ConvShape& s, const void* packed, const uint32_t*, const void* scratch,
         const OutputRange& range, const AccumulatorSink& sink) {
  const PackedLayer layer(s, packed);
  const int windows = group_windows(s);
  // Planes of a vector of filters stay in the second cache for all pixels.
  for (int block = range.block_begin, end; block < range.block_end; block = end) {
    const int lanes = block / kLaneBlocks;
    const uint8_t* const planes = (const uint8_t*)layer.weights + lanes_bytes(s) * lanes;
    end = (lanes + 1) * kLaneBlocks < range.block_end ? (lanes + 1) * kLaneBlocks : range.block_end;
    for (int pixel = range.pixel_begin; pixel < range.pixel_end;) {
      const int y = pixel / s.out_w, group = pixel % s.out_w / windows, x = group * windows;
      const int begin = pixel % s.out_w - x, left = range.pixel_end - pixel + begin;
      int window_end = s.out_w - x < windows ? s.out_w - x : windows;
      if (left < window_end) window_end = left;
      run_group(s, planes, GroupList(s, scratch, y, group),
                {layer, sink, block, end, y, x, begin, window_end});
      pixel += window_end - begin;
    }
  }
}

}  // namespace

extern const BinaryConvKernel kSharedWindowsConv_avx512 = {"bconv2d_shared_windows__avx512gfni",
                                                           packed_bytes,
                                                           pack_weights,
                                                           scratch_bytes,
                                                           prepare_rows,
                                                           prepare_input,
                                                           run};

}  // namespace phonebit::engine::cpu
