// @kernel   bconv2d_b32__neoncnt   binary convolution, threshold or epilogue fused, any shape
// @math     d = sum over taps and words of popcount(x xor w);  acc = base_M - 2 d (border_classes.inl)
// @in       packed bits [H][W][words(Cin)]; a padded copy in scratch where a window reaches over the edge
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [Cout/64][step of 8 channels][64 x u8]
// @source   own; lanes as output channels
//
// A step is 8 channels of a tap: one byte of a pixel, in all lanes of a register, against one byte of each of
// 64 filters. EOR, CNT and ADD add its counts to 64 sums: 43 MAC an operation, and no sum crosses lanes. A
// byte holds 31 steps; then sums are widened to 16 bits. The pair table does better where TBL is cheap, and
// worse for a single pixel, where this reads half as many bytes.
#include "binary_conv_kernels.h"
#include "intrinsics_32.h"
#include "portable/intrinsics.h"
#include "shared_epilogue.h"

namespace phonebit::engine::cpu {
namespace {

#include "portable/epilogue.inl"
#include "portable/padded_map.inl"
#include "portable/simd.inl"

constexpr int kVectors = kChannelBlock / 16;
constexpr int kTilePixels = kCountPixels;
constexpr int kUnrolledSteps = 4;              // a word: runs are as long as that
constexpr int kChunkSteps = 28;                // 28 * 8 <= 255
constexpr int kPartSteps = kChunkSteps * 292;  // 8 of each: below 65535, with room for a limit one above
constexpr int kFinishedPixels = 8;             // that go through the epilogue together
constexpr int kPrefetchBytes = 1024;

/// A window is `count` runs of `length` bytes that lie together in the map: rows of taps, or single taps if dilated.
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

PHONEBIT_RARE size_t entries_bytes(const ConvShape& s) {
  return sizeof(int32_t) * kChannelBlock * border_class_count(s) * block_count(s);
}

/// Packed: [border table][per block, per border class: 64 limits (bit = d < limit) or bases][weights]. Entries have 4
/// bytes; limits of 16-bit sums are stored as such.
size_t packed_bytes(const ConvShape& s) {
  return border_table_bytes(s) + entries_bytes(s) + (size_t)Runs(s).steps() * kChannelBlock * block_count(s);
}

PHONEBIT_RARE void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                                void* packed) {
  write_border_table(s, packed);
  const BorderTable& borders = *(const BorderTable*)packed;
  const Runs runs(s);
  int32_t* entries = (int32_t*)((char*)packed + border_table_bytes(s));
  uint8_t* bytes = (uint8_t*)entries + entries_bytes(s);
  for (int c = 0; c < block_count(s) * kChannelBlock; ++c) {
    // A filter that does not exist repeats the last one; its limit 0 keeps its bit off.
    const uint32_t* filter = weights + (c < s.out_c ? c : s.out_c - 1) * (runs.steps() / 4);
    const int block = c / kChannelBlock, lane = c % kChannelBlock;
    for_each_border_class(s, borders, [&](int index, TapSpan rows, TapSpan columns) {
      int32_t* of_class = entries + ((size_t)block * borders.count() + index) * kChannelBlock;
      const int32_t base = border_base(s, filter, rows, columns);
      if (thresholds == nullptr) {
        of_class[lane] = base;
        return;
      }
      const bool is_short = runs.is_one_part();
      const uint32_t limit =
          c < s.out_c ? popcount_limit(base, thresholds[c], is_short ? UINT16_MAX : INT32_MAX) : 0;
      if (is_short) ((uint16_t*)of_class)[lane] = (uint16_t)limit;
      if (!is_short) of_class[lane] = (int32_t)limit;
    });
    uint8_t* out = bytes + runs.steps() * kChannelBlock * block + lane;
    for (int64_t i = 0; i < runs.steps(); ++i)
      out[i * kChannelBlock] = (uint8_t)(filter[i / 4] >> (8 * (i % 4)));
  }
}

/// Sums of kPixels windows. They stay in registers: 8 + 16 of them for two pixels.
template <int kPixels>
struct Sums {
  uint8x16_t bytes[kPixels][kVectors];
  uint16x8_t shorts[kPixels][2 * kVectors];
};

template <int kPixels, class Body>
PHONEBIT_INLINE void each_vector(const Body& body) {
  unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
    unroll<kVectors>([&](auto q) PHONEBIT_LAMBDA_INLINE { body(p, q); });
  });
}

/// Adds the counts of `steps` bytes, a multiple of kUnrolledSteps, and advances all pointers.
template <int kPixels>
PHONEBIT_INLINE void count_steps(const uint8_t* (&from)[kPixels], int steps, const uint8_t*& weights,
                                 uint8x16_t (&sums)[kPixels][kVectors]) {
  for (; steps > 0; steps -= kUnrolledSteps) {
    if (kPixels == 1) {
      for (int line = 0; line < kUnrolledSteps; ++line)
        __builtin_prefetch(weights + kPrefetchBytes + line * kChannelBlock);
    }
    for (int step = 0; step < kUnrolledSteps; ++step, weights += kChannelBlock) {
      uint8x16_t x[kPixels];
      unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE { x[p] = vld1q_dup_u8(from[p]++); });
      each_vector<kPixels>([&](auto p, auto q) PHONEBIT_LAMBDA_INLINE {
        sums[p][q] = vaddq_u8(sums[p][q], vcntq_u8(veorq_u8(x[p], vld1q_u8(weights + 16 * q))));
      });
    }
  }
}

#if defined(__aarch64__)
/// Each byte 16 times: Cortex-A72 takes one of its two vector operations a cycle for LD1R, and none for a load of 16
/// bytes. Filled when the library is loaded, which takes 4 KB less of it.
struct SameBytes {
  alignas(64) uint8_t rows[256][16];
  SameBytes() {
    for (int i = 0; i < 256; ++i) vst1q_u8(rows[i], vdupq_n_u8((uint8_t)i));
  }
};
const SameBytes kSameBytes;

/// In assembly, because compilers keep too few of the sums in registers.
template <>
PHONEBIT_INLINE void count_steps(const uint8_t* (&from)[2], int steps, const uint8_t*& weights,
                                 uint8x16_t (&sums)[2][kVectors]) {
  int64_t i0, i1;
  // clang-format off
// v24-27 the step's weights, v28-29 the pixels, v30-31 scratch.
#define COUNT(Q, W, T)                                                                                    \
  "eor v" #T ".16b, v28.16b, v" #W ".16b\n"                                                               \
  "eor v" #W ".16b, v29.16b, v" #W ".16b\n"                                                               \
  "cnt v" #T ".16b, v" #T ".16b\n"                                                                        \
  "cnt v" #W ".16b, v" #W ".16b\n"                                                                        \
  "add %[a" #Q "].16b, %[a" #Q "].16b, v" #T ".16b\n"                                                     \
  "add %[b" #Q "].16b, %[b" #Q "].16b, v" #W ".16b\n"
#define STEP(I)                                                                                           \
  "ldrb %w[i0], [%[p0], #" #I "]\n"                                                                       \
  "ldrb %w[i1], [%[p1], #" #I "]\n"                                                                       \
  "ldr q24, [%[weights], #64*" #I "]\n"                                                                   \
  "ldr q25, [%[weights], #64*" #I "+16]\n"                                                                \
  "ldr q28, [%[table], %[i0], lsl #4]\n"                                                                  \
  "ldr q29, [%[table], %[i1], lsl #4]\n"                                                                  \
  "ldr q26, [%[weights], #64*" #I "+32]\n"                                                                \
  "ldr q27, [%[weights], #64*" #I "+48]\n"                                                                \
  COUNT(0, 24, 30) COUNT(1, 25, 31) COUNT(2, 26, 30) COUNT(3, 27, 31)
  asm("1:\n"
      "// begin count 4096 MAC\n"
      "subs %w[steps], %w[steps], #4\n"
      STEP(0) STEP(1) STEP(2) STEP(3)
      "add %[p0], %[p0], #4\n"
      "add %[p1], %[p1], #4\n"
      "add %[weights], %[weights], #256\n"
      "// end count\n"
      "b.ne 1b\n"
      : [a0] "+w"(sums[0][0]), [a1] "+w"(sums[0][1]), [a2] "+w"(sums[0][2]), [a3] "+w"(sums[0][3]),
        [b0] "+w"(sums[1][0]), [b1] "+w"(sums[1][1]), [b2] "+w"(sums[1][2]), [b3] "+w"(sums[1][3]),
        [p0] "+r"(from[0]), [p1] "+r"(from[1]), [weights] "+r"(weights), [steps] "+r"(steps),
        [i0] "=&r"(i0), [i1] "=&r"(i1)
      : [table] "r"(kSameBytes.rows)
      : "cc", "memory", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
#undef COUNT
#undef STEP
  // clang-format on
}
#endif

template <int kPixels>
PHONEBIT_INLINE void widen(Sums<kPixels>& sums) {
  each_vector<kPixels>([&](auto p, auto q) PHONEBIT_LAMBDA_INLINE {
    sums.shorts[p][2 * q] = vaddw_u8(sums.shorts[p][2 * q], vget_low_u8(sums.bytes[p][q]));
    sums.shorts[p][2 * q + 1] = vaddw_high_u8(sums.shorts[p][2 * q + 1], sums.bytes[p][q]);
    sums.bytes[p][q] = vdupq_n_u8(0);
  });
}

/// Adds the counts of runs [begin, end), `length` bytes of each from `first` on.
template <int kPixels>
PHONEBIT_INLINE void count_runs(const Runs& runs, int begin, int end, int first, int length,
                                const uint32_t* const* windows, const uint8_t* weights, Sums<kPixels>& sums) {
  int room = kChunkSteps;
  for (int run = begin; run < end; ++run) {
    const uint8_t* from[kPixels];
    const size_t offset = runs.offset(run);
    unroll<kPixels>([&](auto p)
                        PHONEBIT_LAMBDA_INLINE { from[p] = (const uint8_t*)(windows[p] + offset) + first; });
    for (int left = length, steps; left > 0; left -= steps) {
      steps = left < kChunkSteps ? left : kChunkSteps;
      if (steps > room) {
        widen(sums);
        room = kChunkSteps;
      }
      room -= steps;
      count_steps(from, steps, weights, sums.bytes);
    }
  }
  widen(sums);
}

/// Bit c: sum c is below limits[c], of 64.
PHONEBIT_INLINE uint64_t bits_below(const uint16x8_t (&sums)[2 * kVectors], const uint16_t* limits) {
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  uint8x16_t set[kVectors];
  for (int q = 0; q < kVectors; ++q) {
    const uint16x8_t low = vcltq_u16(sums[2 * q], vld1q_u16(limits + 16 * q));
    const uint16x8_t high = vcltq_u16(sums[2 * q + 1], vld1q_u16(limits + 16 * q + 8));
    set[q] = vandq_u8(vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high)), bit);
  }
  // Pairwise additions gather 8 lanes into a byte each.
  const uint8x16_t quarters = vpaddq_u8(vpaddq_u8(set[0], set[1]), vpaddq_u8(set[2], set[3]));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(quarters, quarters)), 0);
}

/// base - 2 d of 64 channels.
PHONEBIT_INLINE void store_values(const uint16x8_t (&sums)[2 * kVectors], const int32_t* bases,
                                  float* values) {
  unroll<2 * kVectors>([&](auto i) PHONEBIT_LAMBDA_INLINE {
    const uint32x4_t low =
        vmlsl_n_u16(vreinterpretq_u32_s32(vld1q_s32(bases + 8 * i)), vget_low_u16(sums[i]), 2);
    const uint32x4_t high = vmlsl_high_n_u16(vreinterpretq_u32_s32(vld1q_s32(bases + 8 * i + 4)), sums[i], 2);
    vst1q_f32(values + 8 * i, vcvtq_f32_s32(vreinterpretq_s32_u32(low)));
    vst1q_f32(values + 8 * i + 4, vcvtq_f32_s32(vreinterpretq_s32_u32(high)));
  });
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

/// A pixel whose window has several parts.
PHONEBIT_RARE PHONEBIT_NOINLINE uint64_t finish_parts(const int32_t* counts, const int32_t* entries,
                                                      float* values) {
  uint64_t bits = 0;
  for (int c = 0; c < kChannelBlock; ++c) {
    bits |= (uint64_t)(counts[c] < entries[c]) << c;
    values[c] = (float)(entries[c] - 2 * counts[c]);
  }
  return bits;
}

template <int kPixels>
PHONEBIT_NOINLINE void run_block(const ConvShape& s, const void* packed, const WindowMap& map, int begin,
                                 int end, const BlockSink& sink) {
  const BorderTable& borders = *(const BorderTable*)packed;
  const Runs runs(s, map);
  // A run, or some of it, is a part where the window is too long.
  const bool is_one_part = runs.is_one_part();
  const int part_runs = is_one_part ? runs.count : 1;
  const int part_length = runs.length < kPartSteps ? runs.length : kPartSteps;
  const int32_t* entries = (const int32_t*)((const char*)packed + border_table_bytes(s));
  const uint8_t* weights =
      (const uint8_t*)entries + entries_bytes(s) + runs.steps() * kChannelBlock * sink.block;
  entries += (size_t)sink.block * borders.count() * kChannelBlock;
  int32_t counts[kPixels][kChannelBlock];
  alignas(64) float values[kFinishedPixels][kChannelBlock];
  int y = begin / s.out_w, x = begin % s.out_w, waiting = 0;
  for (int pixel = begin; pixel < end; pixel += kPixels) {
    const int pixels = end - pixel < kPixels ? end - pixel : kPixels;
    const uint32_t* windows[kPixels];
    const int32_t* of_class[kPixels];
    for (int p = 0; p < kPixels; ++p) {
      windows[p] =
          map.words + (size_t)y * s.stride_h * map.row_stride + (size_t)x * s.stride_w * map.pixel_stride;
      of_class[p] = entries + (size_t)borders.class_of(s, y, x) * kChannelBlock;
      // A pixel beyond the range repeats the last one and is not written.
      if (pixel + p + 1 < end && ++x == s.out_w) x = 0, ++y;
    }
    if (!is_one_part) __builtin_memset(counts, 0, sizeof(counts));
    Sums<kPixels> sums;
    const uint8_t* part = weights;
    for (int run = 0; run < runs.count; run += part_runs) {
      for (int first = 0; first < runs.length; first += part_length) {
        const int rest = runs.length - first, length = rest < part_length ? rest : part_length;
        sums = {};
        count_runs<kPixels>(runs, run, run + part_runs, first, length, windows, part, sums);
        if (is_one_part) break;
        part += length * kChannelBlock;
        uint16_t shorts[8];
        unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
          unroll<2 * kVectors>([&](auto i) PHONEBIT_LAMBDA_INLINE {
            vst1q_u16(shorts, sums.shorts[p][i]);
            for (int lane = 0; lane < 8; ++lane) counts[p][8 * i + lane] += shorts[lane];
          });
        });
      }
    }
    unroll<kPixels>([&](auto p) PHONEBIT_LAMBDA_INLINE {
      if (p >= pixels) return;
      float* to = values[waiting + p];
      if (!is_one_part) {
        const uint64_t bits = finish_parts(counts[p], of_class[p], to);
        if (sink.wants_bits()) sink.put_bits(bits, pixel + p);
      } else if (sink.wants_bits()) {
        sink.put_bits(bits_below(sums.shorts[p], (const uint16_t*)of_class[p]), pixel + p);
      } else {
        store_values(sums.shorts[p], of_class[p], to);
      }
    });
    if (sink.wants_bits()) continue;
    waiting += pixels;
    if (waiting < kFinishedPixels && pixel + kPixels < end) continue;
    apply_epilogue(*sink.sink.epilogue, values[0], pixel + pixels - waiting, waiting,
                   sink.block * kChannelBlock, sink.channels);
    waiting = 0;
  }
}

PHONEBIT_RARE void run(const ConvShape& s, const void* packed, const uint32_t* input, const void* scratch,
                       const OutputRange& range, const AccumulatorSink& sink) {
  const WindowMap map = window_map(s, input, scratch);
  const auto of_block = has_several_pixels(s) ? run_block<kTilePixels> : run_block<1>;
  for (int block = range.block_begin; block < range.block_end; ++block) {
    of_block(s, packed, map, range.pixel_begin, range.pixel_end, BlockSink(s, block, sink));
  }
}

bool supports(const ConvShape&) { return true; }

}  // namespace

extern const BinaryConvKernel kCountConv_neon = {"bconv2d_b32__neoncnt",
                                                 supports,
                                                 packed_bytes,
                                                 pack_weights,
                                                 padded_bytes,
                                                 padded_rows,
                                                 pad_input,
                                                 kTilePixels,
                                                 run};

}  // namespace phonebit::engine::cpu
