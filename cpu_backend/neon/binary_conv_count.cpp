// @kernel   bconv2d_b32__neoncnt   binary convolution, threshold or epilogue fused, any shape
// @math     d = sum over taps and words of popcount(x xor w);  acc = base_M - 2 d (border_classes.inl)
// @in       packed bits [H][W][words(Cin)]; a padded copy in scratch where a window reaches over the edge
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [Cout/64][step of 8 channels][64 x u8]
// @source   own; lanes as output channels
//
// A step is 8 channels of a tap: one byte of a pixel, in all lanes of a register, against one byte of each of
// 64 filters. EOR, CNT and ADD add its counts to 64 sums: 43 MAC an operation, and no sum crosses lanes. A
// byte holds 31 steps; then sums are widened to 16 bits.
#include "finish_counts.h"
#include "select.h"
#include "shared.h"
#include "simd/neon.h"

namespace phonebit::engine::cpu {
namespace {

#include "portable/padded_map.inl"

constexpr int kVectors = kChannelBlock / 16;
constexpr int kTilePixels = kCountPixels;
constexpr int kUnrolledSteps = 4;              // a word: runs are as long as that
constexpr int kChunkSteps = 28;                // 28 * 8 <= 255
constexpr int kPartSteps = kChunkSteps * 292;  // 8 of each: below 65535, with room for a limit one above
constexpr int kPrefetchBytes = 1024;

/// A window is `count` runs of `length` bytes that lie together in the map: rows of taps, or single taps if
/// dilated.
struct Runs {
  int per_row, count, length;
  size_t row_step = 0, column_step = 0;  // words

  explicit Runs(const ConvShape& s)
      : per_row(s.dilation_w == 1 ? 1 : s.kernel_w),
        count(s.kernel_h * per_row),
        length((s.dilation_w == 1 ? s.kernel_w : 1) * words(s.in_c) * 4) {}
  Runs(const ConvShape& s, const WindowMap& map) : Runs(s) {
    row_step = s.dilation_h * map.row_stride;
    column_step = s.dilation_w * map.pixel_stride;
  }
  size_t offset(int run) const {
    return per_row == 1 ? run * row_step : run / per_row * row_step + run % per_row * column_step;
  }
  int64_t steps() const { return (int64_t)count * length; }
  /// Whether 16 bits hold all sums.
  bool is_one_part() const { return steps() <= kPartSteps; }
};

int block_count(const ConvShape& s) { return (s.out_c + kChannelBlock - 1) / kChannelBlock; }

/// Packed: [entries of shared.h][weights].
size_t packed_bytes(const ConvShape& s) {
  return neon_entries_bytes(s) + (size_t)Runs(s).steps() * kChannelBlock * block_count(s);
}

PHONEBIT_RARE void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                                void* packed) {
  const Runs runs(s);
  neon_pack_entries(s, weights, thresholds, runs.is_one_part(), packed);
  uint8_t* bytes = (uint8_t*)packed + neon_entries_bytes(s);
  for (int c = 0; c < block_count(s) * kChannelBlock; ++c) {
    // A filter that does not exist repeats the last one.
    const uint32_t* filter = weights + (c < s.out_c ? c : s.out_c - 1) * (runs.steps() / 4);
    uint8_t* out = bytes + runs.steps() * kChannelBlock * (c / kChannelBlock) + c % kChannelBlock;
    for (int64_t i = 0; i < runs.steps(); ++i)
      out[i * kChannelBlock] = (uint8_t)(filter[i / 4] >> (8 * (i % 4)));
  }
}

/// Runs to count: `rows` times `columns`, each of `length` bytes. Pointers advance by a run's length, then by
/// `column_skip`, after the last one of a row by `row_skip`, too.
struct RunLoop {
  int rows, columns, length;
  int64_t column_skip, row_skip;

  /// All of them.
  explicit RunLoop(const Runs& runs)
      : rows(runs.count / runs.per_row), columns(runs.per_row), length(runs.length) {
    column_skip = 4 * (int64_t)runs.column_step - length;
    row_skip = 4 * ((int64_t)runs.row_step - (int64_t)runs.column_step * columns);
  }
  /// Some bytes of one run.
  explicit RunLoop(int bytes) : rows(1), columns(1), length(bytes), column_skip(0), row_skip(0) {}
};

template <int kPixels, class Body>
PHONEBIT_INLINE void each_vector(const Body& body) {
  unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](auto q) PHONEBIT_LAMBDA_INLINE { body(p, q); });
  });
}

/// sums[kPixels][kChannelBlock] = start + counts of the windows' differing bits.
template <int kPixels>
PHONEBIT_INLINE void count_runs(const RunLoop& runs, const uint8_t* const* windows, const uint8_t* weights,
                                uint16_t start, uint16_t* sums) {
  const uint8_t* from[kPixels];
  unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { from[p] = windows[p]; });
  uint16x8_t shorts[kPixels][2 * kVectors];
  each_vector<kPixels>([&](auto p, auto q) PHONEBIT_LAMBDA_INLINE {
    shorts[p][2 * q] = shorts[p][2 * q + 1] = vdupq_n_u16(start);
  });
  for (int row = 0; row < runs.rows; ++row) {
    for (int column = 0; column < runs.columns; ++column) {
      for (int left = runs.length; left > 0; left -= kChunkSteps) {
        uint8x16_t bytes[kPixels][kVectors];
        each_vector<kPixels>([&](auto p, auto q) PHONEBIT_LAMBDA_INLINE { bytes[p][q] = vdupq_n_u8(0); });
        for (int step = left < kChunkSteps ? left : kChunkSteps; step > 0; --step, weights += kChannelBlock) {
          if (kPixels == 1) __builtin_prefetch(weights + kPrefetchBytes);
          uint8x16_t x[kPixels];
          unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { x[p] = vld1q_dup_u8(from[p]++); });
          each_vector<kPixels>([&](auto p, auto q) PHONEBIT_LAMBDA_INLINE {
            bytes[p][q] = vaddq_u8(bytes[p][q], vcntq_u8(veorq_u8(x[p], vld1q_u8(weights + 16 * q))));
          });
        }
        each_vector<kPixels>([&](auto p, auto q) PHONEBIT_LAMBDA_INLINE {
          shorts[p][2 * q] = vaddw_u8(shorts[p][2 * q], vget_low_u8(bytes[p][q]));
          shorts[p][2 * q + 1] = vaddw_high_u8(shorts[p][2 * q + 1], bytes[p][q]);
        });
      }
      unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { from[p] += runs.column_skip; });
    }
    unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { from[p] += runs.row_skip; });
  }
  unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
    unroll<2 * kVectors>(
        [&](auto i) PHONEBIT_LAMBDA_INLINE { vst1q_u16(sums + p * kChannelBlock + 8 * i, shorts[p][i]); });
  });
}

#if defined(__aarch64__)
/// Each byte 16 times: Cortex-A72 needs one of its two vector operations per cycle for LD1R, and none for a
/// load of 16 bytes. Filled when the library is loaded, which makes it 4 KB smaller.
struct SameBytes {
  alignas(64) uint8_t rows[256][16];
  SameBytes() {
    for (int i = 0; i < 256; ++i) vst1q_u8(rows[i], vdupq_n_u8((uint8_t)i));
  }
};
const SameBytes kSameBytes;

/// In assembly, because compilers keep too few of the sums in registers.
template <>
PHONEBIT_INLINE void count_runs<2>(const RunLoop& runs, const uint8_t* const* windows, const uint8_t* weights,
                                   uint16_t start, uint16_t* sums) {
  static_assert(kChunkSteps == 28 && kUnrolledSteps == 4);
  const uint8_t *p0 = windows[0], *p1 = windows[1];
  int64_t i0, i1;
  int rows = runs.rows, columns, left, steps;
  // clang-format off
// v0-7 the chunk's sums as bytes, v8-23 all sums, v24-27 the step's weights, v28-29 the pixels, v30-31
// scratch.
#define COUNT(A, B, W, T)                                                                                 \
  "eor v" #T ".16b, v28.16b, v" #W ".16b\n"                                                               \
  "eor v" #W ".16b, v29.16b, v" #W ".16b\n"                                                               \
  "cnt v" #T ".16b, v" #T ".16b\n"                                                                        \
  "cnt v" #W ".16b, v" #W ".16b\n"                                                                        \
  "add v" #A ".16b, v" #A ".16b, v" #T ".16b\n"                                                           \
  "add v" #B ".16b, v" #B ".16b, v" #W ".16b\n"
#define STEP(I)                                                                                           \
  "ldrb %w[i0], [%[p0], #" #I "]\n"                                                                       \
  "ldrb %w[i1], [%[p1], #" #I "]\n"                                                                       \
  "ldr q24, [%[weights], #64*" #I "]\n"                                                                   \
  "ldr q25, [%[weights], #64*" #I "+16]\n"                                                                \
  "ldr q28, [%[table], %[i0], lsl #4]\n"                                                                  \
  "ldr q29, [%[table], %[i1], lsl #4]\n"                                                                  \
  "ldr q26, [%[weights], #64*" #I "+32]\n"                                                                \
  "ldr q27, [%[weights], #64*" #I "+48]\n"                                                                \
  COUNT(0, 4, 24, 30) COUNT(1, 5, 25, 31) COUNT(2, 6, 26, 30) COUNT(3, 7, 27, 31)
#define START(LOW, HIGH) "dup v" #LOW ".8h, %w[start]\n" "dup v" #HIGH ".8h, %w[start]\n"
#define ZERO(V) "movi v" #V ".16b, #0\n"
#define WIDEN(V, LOW, HIGH)                                                                               \
  "uaddw v" #LOW ".8h, v" #LOW ".8h, v" #V ".8b\n"                                                        \
  "uaddw2 v" #HIGH ".8h, v" #HIGH ".8h, v" #V ".16b\n"
#define STORE(LOW, HIGH, AT) "stp q" #LOW ", q" #HIGH ", [%[sums], #" #AT "]\n"
  asm volatile(
      START(8, 9) START(10, 11) START(12, 13) START(14, 15) START(16, 17) START(18, 19) START(20, 21) START(22, 23)
      "1:\n"
      "mov %w[columns], %w[row_columns]\n"
      "2:\n"
      "mov %w[left], %w[length]\n"
      "3:\n"
      "cmp %w[left], #28\n"
      "csel %w[steps], %w[left], %w[chunk], lt\n"
      "sub %w[left], %w[left], %w[steps]\n"
      ZERO(0) ZERO(1) ZERO(2) ZERO(3) ZERO(4) ZERO(5) ZERO(6) ZERO(7)
      "4:\n"
      "// begin count 4096 MAC\n"
      "subs %w[steps], %w[steps], #4\n"
      STEP(0) STEP(1) STEP(2) STEP(3)
      "add %[p0], %[p0], #4\n"
      "add %[p1], %[p1], #4\n"
      "add %[weights], %[weights], #256\n"
      "// end count\n"
      "b.ne 4b\n"
      WIDEN(0, 8, 9) WIDEN(1, 10, 11) WIDEN(2, 12, 13) WIDEN(3, 14, 15)
      WIDEN(4, 16, 17) WIDEN(5, 18, 19) WIDEN(6, 20, 21) WIDEN(7, 22, 23)
      "cbnz %w[left], 3b\n"
      "subs %w[columns], %w[columns], #1\n"
      "add %[p0], %[p0], %[column_skip]\n"
      "add %[p1], %[p1], %[column_skip]\n"
      "b.ne 2b\n"
      "subs %w[rows], %w[rows], #1\n"
      "add %[p0], %[p0], %[row_skip]\n"
      "add %[p1], %[p1], %[row_skip]\n"
      "b.ne 1b\n"
      STORE(8, 9, 0) STORE(10, 11, 32) STORE(12, 13, 64) STORE(14, 15, 96)
      STORE(16, 17, 128) STORE(18, 19, 160) STORE(20, 21, 192) STORE(22, 23, 224)
      : [p0] "+&r"(p0), [p1] "+&r"(p1), [weights] "+&r"(weights), [rows] "+&r"(rows), [columns] "=&r"(columns),
        [left] "=&r"(left), [steps] "=&r"(steps), [i0] "=&r"(i0), [i1] "=&r"(i1)
      : [table] "r"(kSameBytes.rows), [start] "r"(start), [chunk] "r"(kChunkSteps), [length] "r"(runs.length),
        [row_columns] "r"(runs.columns), [column_skip] "r"(runs.column_skip), [row_skip] "r"(runs.row_skip),
        [sums] "r"(sums)
      : "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13",
        "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
        "v29", "v30", "v31");
#undef COUNT
#undef STEP
#undef START
#undef ZERO
#undef WIDEN
#undef STORE
  // clang-format on
}
#endif

/// Bit c: sum c is below limits[c], of 64.
PHONEBIT_INLINE uint64_t bits_below(const uint16_t* sums, const uint16_t* limits) {
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  uint8x16_t set[kVectors];
  for (int q = 0; q < kVectors; ++q, sums += 16, limits += 16) {
    const uint16x8_t low = vcltq_u16(vld1q_u16(sums), vld1q_u16(limits));
    const uint16x8_t high = vcltq_u16(vld1q_u16(sums + 8), vld1q_u16(limits + 8));
    set[q] = vandq_u8(vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high)), bit);
  }
  // Pairwise additions gather 8 lanes into a byte each.
  const uint8x16_t quarters = vpaddq_u8(vpaddq_u8(set[0], set[1]), vpaddq_u8(set[2], set[3]));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(quarters, quarters)), 0);
}

/// Where a block's results go.
struct BlockSink {
  const AccumulatorSink& sink;
  int block, channels;

  BlockSink(const ConvShape& s, int block_index, const AccumulatorSink& to)
      : sink(to), block(block_index), channels(s.out_c - block_index * kChannelBlock) {
    if (channels > kChannelBlock) channels = kChannelBlock;
  }
  bool wants_bits() const { return sink.threshold_bits != nullptr; }
  void put_bits(uint64_t bits, int pixel) const {
    uint32_t* out = sink.threshold_bits + (size_t)pixel * sink.pixel_words + block * (kChannelBlock / 32);
    out[0] = (uint32_t)bits;
    if (channels > 32) out[1] = (uint32_t)(bits >> 32);
  }
};

/// A window of several parts: a run, or some of it, is one. Counts fill 32 bits.
PHONEBIT_RARE PHONEBIT_NOINLINE void finish_parts(const Runs& runs, const uint8_t* window,
                                                  const uint8_t* weights, const int32_t* entries, int pixel,
                                                  const BlockSink& sink) {
  int32_t counts[kChannelBlock] = {};
  float values[kChannelBlock];
  for (int run = 0; run < runs.count; ++run) {
    for (int first = 0, length; first < runs.length; first += length) {
      length = runs.length - first < kPartSteps ? runs.length - first : kPartSteps;
      const uint8_t* from = window + 4 * runs.offset(run) + first;
      uint16_t sums[kChannelBlock];
      count_runs<1>(RunLoop(length), &from, weights, 0, sums);
      weights += (size_t)length * kChannelBlock;
      for (int c = 0; c < kChannelBlock; ++c) counts[c] += sums[c];
    }
  }
  uint64_t bits = 0;
  for (int c = 0; c < kChannelBlock; ++c) {
    bits |= (uint64_t)(counts[c] < entries[c]) << c;
    values[c] = (float)(entries[c] - 2 * counts[c]);
  }
  if (sink.wants_bits()) {
    sink.put_bits(bits, pixel);
  } else {
    apply_epilogue(*sink.sink.epilogue, values, pixel, 1, sink.block * kChannelBlock, sink.channels);
  }
}

constexpr int32_t kNoTotals[] = {kFloatBias, kFloatBias, kFloatBias, kFloatBias,
                                 kFloatBias, kFloatBias, kFloatBias, kFloatBias};
static_assert(sizeof kNoTotals == kFinishedPixels * sizeof(int32_t));

template <int kPixels>
PHONEBIT_NOINLINE void run_block(const ConvShape& s, const void* packed, const WindowMap& map, int begin,
                                 int end, const BlockSink& sink) {
  const BorderTable& borders = *(const BorderTable*)packed;
  const Runs runs(s, map);
  const RunLoop loop(runs);
  const bool is_one_part = runs.is_one_part();
  const int32_t* entries = (const int32_t*)((const char*)packed + border_table_bytes(s));
  const uint8_t* weights =
      (const uint8_t*)packed + neon_entries_bytes(s) + runs.steps() * kChannelBlock * sink.block;
  entries += (size_t)sink.block * borders.count() * kChannelBlock;
  alignas(64) uint16_t sums[kFinishedPixels][kChannelBlock];
  const int32_t* of_class[kFinishedPixels];
  int y = begin / s.out_w, x = begin % s.out_w, waiting = 0;
  for (int pixel = begin; pixel < end; pixel += kPixels) {
    const int pixels = end - pixel < kPixels ? end - pixel : kPixels;
    const uint8_t* windows[kPixels];
    for (int p = 0; p < kPixels; ++p) {
      windows[p] = (const uint8_t*)(map.words + (size_t)y * s.stride_h * map.row_stride +
                                    (size_t)x * s.stride_w * map.pixel_stride);
      of_class[waiting + p] = entries + (size_t)borders.class_of(s, y, x) * kChannelBlock;
      // A pixel beyond the range repeats the last one and is not written.
      if (pixel + p + 1 < end && ++x == s.out_w) x = 0, ++y;
    }
    if (!is_one_part) {
      for (int p = 0; p < pixels; ++p) finish_parts(runs, windows[p], weights, of_class[p], pixel + p, sink);
      continue;
    }
    // The epilogue's counts begin at -2^15.
    count_runs<kPixels>(loop, windows, weights, sink.wants_bits() ? 0 : 0x8000, sums[waiting]);
    if (sink.wants_bits()) {
      for (int p = 0; p < pixels; ++p)
        sink.put_bits(bits_below(sums[p], (const uint16_t*)of_class[p]), pixel + p);
      continue;
    }
    waiting += pixels;
    if (waiting < kFinishedPixels && pixel + kPixels < end) continue;
    finish_counts(*sink.sink.epilogue,
                  {(const int16_t*)sums[0], of_class, kNoTotals, 2, pixel + pixels - waiting, waiting},
                  sink.block * kChannelBlock, sink.channels);
    waiting = 0;
  }
}

PHONEBIT_RARE void run(const ConvShape& s, const void* packed, const uint32_t* input, const void* scratch,
                       const OutputRange& range, const AccumulatorSink& sink) {
  const WindowMap map = window_map(s, input, scratch);
  const auto of_block = is_one_pixel(s) ? run_block<1> : run_block<kTilePixels>;
  for (int block = range.block_begin; block < range.block_end; ++block) {
    of_block(s, packed, map, range.pixel_begin, range.pixel_end, BlockSink(s, block, sink));
  }
}

}  // namespace

PHONEBIT_RARE size_t neon_entries_bytes(const ConvShape& s) {
  return border_table_bytes(s) + sizeof(int32_t) * kChannelBlock * border_class_count(s) * block_count(s);
}

PHONEBIT_RARE void neon_pack_entries(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                                     bool has_short_sums, void* packed) {
  write_border_table(s, packed);
  const BorderTable& borders = *(const BorderTable*)packed;
  int32_t* entries = (int32_t*)((char*)packed + border_table_bytes(s));
  const size_t filter_words = (size_t)s.kernel_h * s.kernel_w * words(s.in_c);
  for (int c = 0; c < block_count(s) * kChannelBlock; ++c) {
    const bool exists = c < s.out_c;
    const int block = c / kChannelBlock, lane = c % kChannelBlock;
    const uint32_t* filter = weights + (exists ? c : s.out_c - 1) * filter_words;
    for_each_border_class(s, borders, [&](int index, TapSpan rows, TapSpan columns) {
      int32_t* of_class = entries + ((size_t)block * borders.count() + index) * kChannelBlock;
      const int32_t base = border_base(s, filter, rows, columns);
      if (thresholds == nullptr) {
        of_class[lane] = base + (has_short_sums ? kBaseBias : 0);
        return;
      }
      // The limit 0 keeps the bit of a filter that does not exist off.
      const uint32_t max_limit = has_short_sums ? UINT16_MAX : INT32_MAX;
      const uint32_t limit = exists ? popcount_limit(base, thresholds[c], max_limit) : 0;
      if (has_short_sums) ((uint16_t*)of_class)[lane] = (uint16_t)limit;
      if (!has_short_sums) of_class[lane] = (int32_t)limit;
    });
  }
}

extern const BinaryConvKernel kCountConv_neon = {
    "bconv2d_b32__neoncnt", packed_bytes, pack_weights, padded_bytes, padded_rows, pad_input, run};

}  // namespace phonebit::engine::cpu
