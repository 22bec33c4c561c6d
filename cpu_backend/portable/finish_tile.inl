// A convolution's tile runs its epilogue itself, from registers to the output. apply_epilogue would read the sums
// from a buffer, which the next multiply-adds wait for, and stores a group of tiles at once, which fills the store
// queue; one tile's stores overlap with the next one's multiply-adds. Common steps only; each does what
// epilogue_tile does.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

/// On Arm not measured, and the code would not fit into a small library.
constexpr bool kFinishesTiles = !kSmallCode;

/// An epilogue that a tile runs by itself, and the tile's place in the output.
struct TileFinish {
  const Epilogue* epilogue;
  int channel;          // the slice's first
  int64_t first, last;  // pixels; the last one may be the one before once more
};

static inline bool finishes_tiles(const ConvShape& s, const Epilogue& epilogue) {
  if (!kFinishesTiles || epilogue.plane_count) return false;
  for (int i = 0; i < epilogue.step_count; i++) {
    const StepKind kind = epilogue.steps[i].kind;
    if (kind != StepKind::kScaleBias && kind != StepKind::kAdd && kind != StepKind::kClamp) return false;
  }
  return s.out_c % (epilogue.bits ? 32 : kLanes) == 0;  // whole words, or vectors
}

/// Runs the epilogue over the sums and stores the results.
template <int kPixels, int kVectors>
PHONEBIT_INLINE void finish_tile(const TileFinish& finish, FloatVector (&sum)[kPixels][kVectors]) {
  // A copy: stores could change what is read through a pointer.
  const TileFinish at = finish;
  const Epilogue& epilogue = *at.epilogue;
  // body(p, j, the values of vector j of pixel p in a tensor)
  const auto each = [&](auto* tensor, int64_t pixel_step, const auto& body) PHONEBIT_LAMBDA_INLINE {
    auto* const first = tensor + at.first * pixel_step + at.channel;
    auto* const last = tensor + at.last * pixel_step + at.channel;
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
      auto* const row = p + 1 < kPixels ? first + p * pixel_step : last;
      unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE { body(p, j, row + j * kLanes); });
    });
  };
  for (int s = 0; s < epilogue.step_count; s++) {
    const EpilogueStep& step = epilogue.steps[s];
    if (step.kind == StepKind::kAdd) {
      each(step.tensor, step.tensor_pixel_stride,
           [&](int p, int j, const float* x) PHONEBIT_LAMBDA_INLINE { sum[p][j] += load(x); });
      continue;
    }
    const bool is_limit = step.kind == StepKind::kClamp;
    const bool has_high = !(step.low <= step.high && step.high == __builtin_inff());
    unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE {
      if (is_limit) {
        unroll<kPixels>([&](int p)
                            PHONEBIT_LAMBDA_INLINE { sum[p][j] = maximum(sum[p][j], broadcast(step.low)); });
        if (!has_high) return;
        unroll<kPixels>([&](int p)
                            PHONEBIT_LAMBDA_INLINE { sum[p][j] = minimum(sum[p][j], broadcast(step.high)); });
        return;
      }
      const FloatVector scale = load(step.a + at.channel + j * kLanes),
                        bias = load(step.b + at.channel + j * kLanes);
      unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
        const FloatVector scaled = sum[p][j] * scale;
        sum[p][j] = scaled + bias;
      });
    });
  }
  uint32_t* const bits = epilogue.bits;
  const int64_t pixel_words = epilogue.pixel_words;
  const float* const thresholds = epilogue.threshold;
  if (epilogue.value)
    each(epilogue.value, epilogue.pixel_channels,
         [&](int p, int j, float* to) PHONEBIT_LAMBDA_INLINE { store(to, sum[p][j]); });
  if (!bits) return;
  FloatVector threshold[kVectors] = {};
  if (thresholds)
    unroll<kVectors>(
        [&](int j) PHONEBIT_LAMBDA_INLINE { threshold[j] = load(thresholds + at.channel + j * kLanes); });
  // Little-endian: a slice's bits are bytes of a word.
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
    const int64_t pixel = p + 1 < kPixels ? at.first + p : at.last;
    const uint64_t reached = greater_equal_bits(sum[p], threshold);
    __builtin_memcpy((char*)(bits + pixel * pixel_words) + at.channel / 8, &reached, kVectors * kLanes / 8);
  });
}
