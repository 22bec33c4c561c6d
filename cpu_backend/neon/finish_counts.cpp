#include "finish_counts.h"

#include "shared.h"
#include "simd/neon.h"

namespace phonebit::engine::cpu {
namespace {

/// Any epilogue: accumulators as floats first.
PHONEBIT_NOINLINE void finish_any(const Epilogue& epilogue, const CountTile& tile, int channel0,
                                  int channels) {
  alignas(64) float values[kFinishedPixels][kChannelBlock];
  for (int p = 0; p < tile.count; ++p) {
    const int16_t* counts = tile.counts + p * kChannelBlock;
    for (int c = 0; c < kChannelBlock; ++c)
      values[p][c] = (float)(tile.bases[p][c] - tile.factor * counts[c] - tile.totals[p]);
  }
  neon_epilogue(epilogue, values[0], tile.pixel0, tile.count, channel0, channels);
}

#if defined(__aarch64__)

constexpr int kWordVectors = 32 / kLanes;

/// The steps of a residual block: a lower limit (ReLU), scale and bias, a shortcut, another lower limit. What is
/// missing is a number that changes nothing, so that they are straight code.
struct ResidualSteps {
  FloatVector low, last_low;
  const EpilogueStep* scale = nullptr;
  const EpilogueStep* shortcut = nullptr;
  bool has_last_low = false;

  /// FMAXNM returns what a > b ? a : b does, but where b is -0 or a NaN.
  static bool is_lower_limit(const EpilogueStep& step) {
    return step.kind == StepKind::kClamp && step.low <= step.high && step.high == __builtin_inff() &&
           (step.low != 0 || !__builtin_signbit(step.low));
  }

  /// False if the epilogue has other steps.
  PHONEBIT_RARE bool read(const Epilogue& epilogue) {
    const EpilogueStep *step = epilogue.steps, *const end = step + epilogue.step_count;
    low = last_low = broadcast(__builtin_nanf(""));  // FMAXNM's neutral number
    if (step != end && is_lower_limit(*step)) low = broadcast(step++->low);
    if (step == end || step->kind != StepKind::kScaleBias) return false;
    scale = step++;
    if (step != end && step->kind == StepKind::kAdd) shortcut = step++;
    has_last_low = step != end && is_lower_limit(*step);
    if (has_last_low) last_low = broadcast(step++->low);
    return step == end && epilogue.value != nullptr;
  }
};

PHONEBIT_INLINE FloatVector at_least(FloatVector v, FloatVector low) {
  return (FloatVector)vmaxnmq_f32((float32x4_t)v, (float32x4_t)low);
}

/// Whole words of channels.
template <bool kHasLastLow>
PHONEBIT_INLINE void finish_residual(const Epilogue& epilogue, const ResidualSteps& steps,
                                     const CountTile& tile, int channel0, int channels) {
  static constexpr float kZeros[32] = {};
  float nothing[32];  // x + -0 is x
  for (float& x : nothing) x = -0.0f;
  uint32_t unused;
  const FloatVector low = steps.low, last_low = steps.last_low;
  const int16_t factor = (int16_t)tile.factor;
  const size_t pixel_channels = epilogue.pixel_channels, pixel_words = epilogue.pixel_words;
  for (int c = 0; c < channels; c += 32) {
    const int channel = channel0 + c;
    const float *scale = steps.scale->a + channel, *bias = steps.scale->b + channel;
    const float* threshold = epilogue.bits && epilogue.threshold ? epilogue.threshold + channel : kZeros;
    for (int p = 0; p < tile.count; ++p) {
      const int64_t pixel = tile.pixel0 + p;
      const int16_t* counts = tile.counts + p * kChannelBlock + c;
      const int32_t* bases = tile.bases[p] + c;
      const FloatVector total = (FloatVector)vdupq_n_s32(tile.totals[p]);
      const float* shortcut =
          steps.shortcut ? steps.shortcut->tensor + pixel * steps.shortcut->tensor_pixel_stride + channel
                         : nothing;
      float* value = epilogue.value + pixel * pixel_channels + channel;
      FloatVector v[kWordVectors];
      unroll<kWordVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
        constexpr int kAt = j * kLanes;
        const int32x4_t base = vld1q_s32(bases + kAt);
        const int16x8_t two = vld1q_s16(counts + kAt / 8 * 8);  // one load for two vectors
        const FloatVector biased = (FloatVector)(j % 2 == 0 ? vmlsl_n_s16(base, vget_low_s16(two), factor)
                                                            : vmlsl_high_n_s16(base, two, factor));
        const FloatVector scaled = at_least(biased - total, low) * load(scale + kAt);
        const FloatVector shifted = scaled + load(bias + kAt);
        v[j] = shifted + load(shortcut + kAt);
        if constexpr (kHasLastLow) v[j] = at_least(v[j], last_low);
      });
      uint32x4_t reached = {};  // nibble j: vector j's comparison
      unroll<kWordVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE {
        constexpr int kAt = j * kLanes;
        const uint32x4_t is_reached = (uint32x4_t)(v[j] >= load(threshold + kAt));
        if constexpr (j == 0) reached = is_reached;
        if constexpr (j > 0) reached = vsliq_n_u32(reached, is_reached, kAt);
      });
      unroll<kWordVectors>([&](auto j) PHONEBIT_LAMBDA_INLINE { store(value + j * kLanes, v[j]); });
      const WordVector lanes = {0x11111111, 0x22222222, 0x44444444, 0x88888888};
      uint32_t* bits = epilogue.bits ? epilogue.bits + pixel * pixel_words + channel / 32 : &unused;
      *bits = vaddvq_u32(reached & (uint32x4_t)lanes);
    }
  }
}
#endif

}  // namespace

void finish_counts(const Epilogue& epilogue, const CountTile& tile, int channel0, int channels) {
#if defined(__aarch64__)
  ResidualSteps steps;
  if (channels % 32 == 0 && steps.read(epilogue)) {
    if (steps.has_last_low) {
      finish_residual<true>(epilogue, steps, tile, channel0, channels);
    } else {
      finish_residual<false>(epilogue, steps, tile, channel0, channels);
    }
    return;
  }
#endif
  finish_any(epilogue, tile, channel0, channels);
}

}  // namespace phonebit::engine::cpu
