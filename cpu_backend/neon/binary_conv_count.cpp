// @kernel   bconv2d_b32__neoncnt   binary convolution, threshold or epilogue fused, any shape
// @math     d = sum over taps and words of popcount(x xor w);  acc = base_M - 2 d (border_classes.inl)
// @in       packed bits [H][W][words(Cin)]; a padded copy in scratch where a window reaches over the edge
// @out      packed bits, or float32 tiles for the epilogue
// @weights  [Cout/64][8 groups][step of 128 bits][8 x 16 bytes]
// @source   own; pairwise sums of eight filters as in daBNN and Larq Compute Engine
//
// EOR and CNT give bytes; three levels of ADDP turn those of eight filters into two bytes a filter, which one
// UADALP adds to 16-bit sums: 24 operations for 1024 MAC of a pixel, 43 MAC an operation. The pair table does
// better where TBL is cheap, and worse for a single pixel, where this reads half as many bytes.
#include "binary_conv_kernels.h"
#include "intrinsics_32.h"
#include "portable/intrinsics.h"
#include "shared_epilogue.h"

namespace phonebit::engine::cpu {
namespace {

#include "portable/epilogue.inl"
#include "portable/padded_map.inl"

constexpr int kFilters = 8;  // of a group
constexpr int kGroups = kChannelBlock / kFilters;
constexpr int kStepWords = 4;  // 128 bits
constexpr int kStepBytes = 16 * kFilters;
constexpr int kTilePixels = kCountPixels;
constexpr int kPartSteps = 65535 / 128;  // a step adds up to 128 to a 16-bit sum
constexpr int kPrefetchBytes = 1024;

/// A window is `rows` x `per_row` runs of words that lie together in the map: a row of taps, or one tap if
/// dilated.
struct Runs {
  int rows, per_row, length, steps;

  explicit Runs(const ConvShape& s)
      : rows(s.kernel_h),
        per_row(s.dilation_w == 1 ? 1 : s.kernel_w),
        length((s.dilation_w == 1 ? s.kernel_w : 1) * words(s.in_c)),
        steps((length + kStepWords - 1) / kStepWords) {}
  int64_t group_bytes() const { return (int64_t)kStepBytes * steps * per_row * rows; }
};

int block_count(const ConvShape& s) { return (s.out_c + kChannelBlock - 1) / kChannelBlock; }

PHONEBIT_RARE size_t entries_bytes(const ConvShape& s) {
  return sizeof(int32_t) * kChannelBlock * border_class_count(s) * block_count(s);
}

/// Packed: [border table][per block, per border class: 64 limits (bit = d < limit) or bases][weights].
size_t packed_bytes(const ConvShape& s) {
  return border_table_bytes(s) + entries_bytes(s) + (size_t)Runs(s).group_bytes() * kGroups * block_count(s);
}

PHONEBIT_RARE void pack_weights(const ConvShape& s, const uint32_t* weights, const int32_t* thresholds,
                                void* packed) {
  write_border_table(s, packed);
  const BorderTable& borders = *(const BorderTable*)packed;
  const Runs runs(s);
  int32_t* entries = (int32_t*)((char*)packed + border_table_bytes(s));
  uint32_t* groups = (uint32_t*)((char*)entries + entries_bytes(s));
  const size_t filter_words = (size_t)runs.rows * runs.per_row * runs.length;
  for (int c = 0; c < block_count(s) * kChannelBlock; ++c) {
    // A filter that does not exist repeats the last one; its limit 0 keeps its bit off.
    const uint32_t* filter = weights + (c < s.out_c ? c : s.out_c - 1) * filter_words;
    int32_t* of_block = entries + (size_t)c / kChannelBlock * borders.count() * kChannelBlock;
    for_each_border_class(s, borders, [&](int index, TapSpan rows, TapSpan columns) {
      const int32_t base = border_base(s, filter, rows, columns);
      of_block[index * kChannelBlock + c % kChannelBlock] =
          thresholds == nullptr ? base
          : c < s.out_c         ? (int32_t)popcount_limit(base, thresholds[c], INT32_MAX)
                                : 0;
    });
    uint32_t* out = groups + c / kFilters * (runs.group_bytes() / 4) + c % kFilters * kStepWords;
    for (int run = 0; run < runs.rows * runs.per_row; ++run) {
      for (int i = 0; i < runs.steps * kStepWords; ++i) {
        out[i / kStepWords * (kStepBytes / 4) + i % kStepWords] = i < runs.length ? *filter++ : 0;
      }
      out += runs.steps * (kStepBytes / 4);
    }
  }
}

/// Two bytes a filter: counts of the halves of its 128 bits.
PHONEBIT_INLINE uint8x16_t count_step(uint8x16_t x, const uint8x16_t (&w)[kFilters]) {
  uint8x16_t c[kFilters];
  for (int i = 0; i < kFilters; ++i) c[i] = vcntq_u8(veorq_u8(x, w[i]));
  const uint8x16_t low = vpaddq_u8(vpaddq_u8(c[0], c[1]), vpaddq_u8(c[2], c[3]));
  const uint8x16_t high = vpaddq_u8(vpaddq_u8(c[4], c[5]), vpaddq_u8(c[6], c[7]));
  return vpaddq_u8(low, high);
}

/// The last words of a run; zero beyond them, as in the weights.
PHONEBIT_INLINE uint8x16_t load_tail(const uint32_t* x, int count) {
  uint32_t tail[kStepWords] = {};
  for (int i = 0; i < count; ++i) tail[i] = x[i];
  return vreinterpretq_u8_u32(vld1q_u32(tail));
}

/// Adds the counts of 8 filters to counts[p][0 .. 7].
template <int kPixels>
PHONEBIT_INLINE void count_group(const Runs& runs, const WindowMap& map, const ConvShape& s,
                                 const uint32_t* const* windows, const uint8_t* weights,
                                 int32_t (*counts)[kChannelBlock]) {
  uint16x8_t sums[kPixels] = {};
  int room = kPartSteps;
  const auto widen = [&]() PHONEBIT_LAMBDA_INLINE {
    for (int p = 0; p < kPixels; ++p) {
      vst1q_s32(counts[p], vreinterpretq_s32_u32(vaddw_u16(vreinterpretq_u32_s32(vld1q_s32(counts[p])),
                                                           vget_low_u16(sums[p]))));
      vst1q_s32(counts[p] + 4, vreinterpretq_s32_u32(
                                   vaddw_high_u16(vreinterpretq_u32_s32(vld1q_s32(counts[p] + 4)), sums[p])));
      sums[p] = vdupq_n_u16(0);
    }
    room = kPartSteps;
  };
  const auto step = [&](const uint8x16_t(&x)[kPixels]) PHONEBIT_LAMBDA_INLINE {
    uint8x16_t w[kFilters];
    for (int i = 0; i < kFilters; ++i) w[i] = vld1q_u8(weights + 16 * i);
    weights += kStepBytes;
    for (int p = 0; p < kPixels; ++p) sums[p] = vpadalq_u8(sums[p], count_step(x[p], w));
  };
  const int full = runs.length / kStepWords, tail = runs.length % kStepWords;
  for (int row = 0; row < runs.rows; ++row) {
    for (int run = 0; run < runs.per_row; ++run) {
      const size_t offset =
          (size_t)row * s.dilation_h * map.row_stride + (size_t)run * s.dilation_w * map.pixel_stride;
      const uint32_t* from[kPixels];
      for (int p = 0; p < kPixels; ++p) from[p] = windows[p] + offset;
      for (int left = full; left > 0;) {
        const int steps = left < room ? left : room;
        left -= steps;
        room -= steps;
        for (int i = 0; i < steps; ++i) {
          if (kPixels == kTilePixels) PHONEBIT_MCA_MARKER("begin count 4096 MAC");
          uint8x16_t x[kPixels];
          for (int p = 0; p < kPixels; ++p) {
            x[p] = vreinterpretq_u8_u32(vld1q_u32(from[p]));
            from[p] += kStepWords;
          }
          if (kPixels == 1) {
            __builtin_prefetch(weights + kPrefetchBytes);
            __builtin_prefetch(weights + kPrefetchBytes + 64);
          }
          step(x);
          if (kPixels == kTilePixels) PHONEBIT_MCA_MARKER("end count");
        }
        if (room == 0) widen();
      }
      if (tail != 0) {
        uint8x16_t x[kPixels];
        for (int p = 0; p < kPixels; ++p) x[p] = load_tail(from[p], tail);
        step(x);
        if (--room == 0) widen();
      }
    }
  }
  widen();
}

/// Bit c: counts[c] < limits[c], of 64.
uint64_t bits_below(const int32_t* counts, const int32_t* limits) {
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  uint8x16_t set[4];
  for (int q = 0; q < 4; ++q, counts += 16, limits += 16) {
    uint16x8_t below[4];
    for (int i = 0; i < 4; ++i) {
      below[i] = vreinterpretq_u16_u32(vcltq_s32(vld1q_s32(counts + 4 * i), vld1q_s32(limits + 4 * i)));
    }
    const uint16x8_t low = vuzp1q_u16(below[0], below[1]), high = vuzp1q_u16(below[2], below[3]);
    set[q] = vandq_u8(vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high)), bit);
  }
  // Pairwise additions gather 8 lanes into a byte each.
  const uint8x16_t quarters = vpaddq_u8(vpaddq_u8(set[0], set[1]), vpaddq_u8(set[2], set[3]));
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(quarters, quarters)), 0);
}

template <int kPixels>
PHONEBIT_NOINLINE void run_block(const ConvShape& s, const void* packed, const WindowMap& map, int block,
                                 int begin, int end, const AccumulatorSink& sink) {
  const BorderTable& borders = *(const BorderTable*)packed;
  const Runs runs(s);
  const int32_t* entries = (const int32_t*)((const char*)packed + border_table_bytes(s));
  const uint8_t* weights = (const uint8_t*)entries + entries_bytes(s) + runs.group_bytes() * kGroups * block;
  entries += (size_t)block * borders.count() * kChannelBlock;
  const int rest = s.out_c - block * kChannelBlock, channels = rest < kChannelBlock ? rest : kChannelBlock;
  const int groups = (channels + kFilters - 1) / kFilters;
  alignas(64) int32_t counts[kPixels][kChannelBlock];
  alignas(64) float values[kPixels][kChannelBlock];
  for (int first = begin; first < end; first += kPixels) {
    const int count = end - first < kPixels ? end - first : kPixels;
    const uint32_t* windows[kPixels];
    const int32_t* of_class[kPixels];
    for (int p = 0; p < kPixels; ++p) {
      // Pixels beyond the range repeat the last one and are not written.
      const int pixel = first + (p < count ? p : count - 1), y = pixel / s.out_w, x = pixel % s.out_w;
      windows[p] =
          map.words + (size_t)y * s.stride_h * map.row_stride + (size_t)x * s.stride_w * map.pixel_stride;
      of_class[p] = entries + (size_t)borders.class_of(s, y, x) * kChannelBlock;
    }
    __builtin_memset(counts, 0, sizeof(counts));
    for (int g = 0; g < groups; ++g) {
      count_group<kPixels>(runs, map, s, windows, weights + runs.group_bytes() * g,
                           (int32_t (*)[kChannelBlock])(counts[0] + g * kFilters));
    }
    if (sink.threshold_bits == nullptr) {
      for (int p = 0; p < count; ++p) {
        for (int c = 0; c < kChannelBlock; ++c) values[p][c] = (float)(of_class[p][c] - 2 * counts[p][c]);
      }
      apply_epilogue(*sink.epilogue, values[0], first, count, block * kChannelBlock, channels);
      continue;
    }
    for (int p = 0; p < count; ++p) {
      const uint64_t bits = bits_below(counts[p], of_class[p]);
      uint32_t* out =
          sink.threshold_bits + (size_t)(first + p) * sink.pixel_words + block * (kChannelBlock / 32);
      out[0] = (uint32_t)bits;
      if (channels > 32) out[1] = (uint32_t)(bits >> 32);
    }
  }
}

PHONEBIT_RARE void run(const ConvShape& s, const void* packed, const uint32_t* input, const void* scratch,
                       const OutputRange& range, const AccumulatorSink& sink) {
  const WindowMap map = window_map(s, input, scratch);
  for (int block = range.block_begin; block < range.block_end; ++block) {
    if (s.out_h * s.out_w == 1) {
      run_block<1>(s, packed, map, block, range.pixel_begin, range.pixel_end, sink);
    } else {
      run_block<kTilePixels>(s, packed, map, block, range.pixel_begin, range.pixel_end, sink);
    }
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
