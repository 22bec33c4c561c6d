// What every kernel does with its float32 results: the steps of docs/format.md, the value output and the
// packed bits.
//
// A tile of results sits in registers while all steps run over it, so a residual block (scale, bias,
// shortcut, sign) reads each operand once and writes each output once. The step kinds are interpreted once
// per tile, which costs a predicted branch per step and supports any sequence of steps at the speed of a
// special case.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "functions.inl"

/// Vectors of results in one register tile; operands and constants have the other registers.
constexpr int kEpilogueVectors = kRegisters / 2;
/// Pixels of a tile of channels that fill no vector; they are too few to be worth a phone's memory.
constexpr int kPartialPixels = kSmallCode ? 1 : 4;
/// A block's 64 channels in one tile. On NEON they would fill it with one pixel; two pixels of 32 channels share
/// the loads of scales and biases.
constexpr bool kWideEpilogue = kChannelBlock / kLanes <= 8;

/// Where a tile's results come from: pixel p, channel c at v[p * stride + c].
struct TileSource {
  const float* v;
  int64_t stride;
};

/// How many of its channel's thresholds each result reaches. The tile has rows of `vectors`, `pixels` of
/// them; `valid` channels where it is partial. Loops keep the code small.
__attribute__((unused)) PHONEBIT_NOINLINE void count_reached(FloatVector* tile, int pixels, int vectors,
                                                             const EpilogueStep& step, int channel,
                                                             int valid) {
  for (int j = 0; j < vectors; j++) {
    IntVector reached[4] = {};  // a tile's pixels
    const float* row = step.a + channel + j * kLanes;
    for (int i = 0; i < step.count; i++, row += step.count_stride) {
      const FloatVector limit = valid < kLanes ? load_partial(row, valid) : load(row);
      for (int p = 0; p < pixels; p++)
        reached[p] = tile[p * vectors + j] >= limit ? reached[p] + 1 : reached[p];
    }
    for (int p = 0; p < pixels; p++) tile[p * vectors + j] = __builtin_convertvector(reached[p], FloatVector);
  }
}

/// Stores the planes of a tile's levels. Bit b of a level changes at every threshold whose number, from 1 on, is
/// a multiple of 2^b.
template <int kPixels, int kVectors>
PHONEBIT_INLINE void store_planes(const Epilogue& epilogue, const FloatVector (&tile)[kPixels][kVectors],
                                  int64_t pixel, int channel) {
  uint64_t planes[kMaxEpiloguePlanes][kPixels] = {};
  const float* row = epilogue.threshold + channel;
  for (int level = 1; level <= epilogue.level_count; level++, row += epilogue.level_stride) {
    FloatVector limits[kVectors];
    unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE { limits[j] = load(row + j * kLanes); });
    uint64_t reached[kPixels];
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { reached[p] = greater_equal_bits(tile[p], limits); });
    for (int b = 0; b < epilogue.plane_count && level % (1 << b) == 0; b++)
      unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { planes[b][p] ^= reached[p]; });
  }
  for (int b = 0; b < epilogue.plane_count; b++) {
    uint32_t* to = epilogue.planes[b] + pixel * epilogue.pixel_words + channel / 32;
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
      __builtin_memcpy(to + p * epilogue.pixel_words, &planes[b][p], kVectors * kLanes / 8);
    });
  }
}

/// The same of one pixel, once in a small library.
template <int kVectors>
PHONEBIT_NOINLINE void store_pixel_planes(const Epilogue& epilogue, const FloatVector (&tile)[1][kVectors],
                                          int64_t pixel, int channel) {
  store_planes(epilogue, tile, pixel, channel);
}

/// Runs the steps over kPixels x kVectors vectors, stores the value output and returns the bits of each
/// pixel. kPartial: the only vector holds `valid` < kLanes channels; nothing beyond them is read or written.
template <int kPixels, int kVectors, bool kPartial>
PHONEBIT_INLINE void epilogue_tile(const Epilogue& epilogue, const TileSource& from, int64_t pixel,
                                   int channel, [[maybe_unused]] int valid, uint64_t (&bits)[kPixels]) {
  static_assert(!kPartial || kVectors == 1, "a partial tile is one vector");
  const auto fetch = [&](const float* first) PHONEBIT_LAMBDA_INLINE {
    if constexpr (kPartial) {
      return load_partial(first, valid);
    } else {
      return load(first);
    }
  };
  FloatVector tile[kPixels][kVectors];
  const auto each = [&](const auto& body) PHONEBIT_LAMBDA_INLINE {
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
      unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE { body(p, j); });
    });
  };
  each([&](int p, int j)
           PHONEBIT_LAMBDA_INLINE { tile[p][j] = fetch(from.v + p * from.stride + j * kLanes); });

  for (int s = 0; s < epilogue.step_count; s++) {
    const EpilogueStep& step = epilogue.steps[s];
    switch (step.kind) {
      case StepKind::kScaleBias:
        unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE {
          const FloatVector scale = fetch(step.a + channel + j * kLanes),
                            bias = fetch(step.b + channel + j * kLanes);
          unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
            const FloatVector scaled = tile[p][j] * scale;
            tile[p][j] = scaled + bias;
          });
        });
        break;
      case StepKind::kAdd: {
        const float* tensor = step.tensor + pixel * step.tensor_pixel_stride + channel;
        each([&](int p, int j) PHONEBIT_LAMBDA_INLINE {
          tile[p][j] += fetch(tensor + p * step.tensor_pixel_stride + j * kLanes);
        });
        break;
      }
      case StepKind::kMultiply: {
        const float* tensor = step.tensor + pixel * step.tensor_pixel_stride + channel;
        each([&](int p, int j) PHONEBIT_LAMBDA_INLINE {
          tile[p][j] *= fetch(tensor + p * step.tensor_pixel_stride + j * kLanes);
        });
        break;
      }
      case StepKind::kClamp: {
        const FloatVector low = broadcast(step.low), high = broadcast(step.high);
        each([&](int p, int j) PHONEBIT_LAMBDA_INLINE { tile[p][j] = maximum(tile[p][j], low); });
        if (step.low <= step.high && step.high == __builtin_inff())
          break;  // ReLU: nothing is above, or a NaN
        each([&](int p, int j) PHONEBIT_LAMBDA_INLINE { tile[p][j] = minimum(tile[p][j], high); });
        break;
      }
      case StepKind::kPrelu: {
        const float* slope = step.a + pixel * step.slope_pixel_stride + channel;
        if (step.b) {
          const float* above = step.b + pixel * step.slope_pixel_stride + channel;
          each([&](int p, int j) PHONEBIT_LAMBDA_INLINE {
            const int64_t at = p * step.slope_pixel_stride + j * kLanes;
            const FloatVector low = fetch(slope + at), high = fetch(above + at);
            tile[p][j] *= tile[p][j] >= FloatVector{} ? high : low;
          });
          break;
        }
        each([&](int p, int j) PHONEBIT_LAMBDA_INLINE {
          const FloatVector scaled = tile[p][j] * fetch(slope + p * step.slope_pixel_stride + j * kLanes);
          tile[p][j] = tile[p][j] >= FloatVector{} ? tile[p][j] : scaled;
        });
        break;
      }
      case StepKind::kCount: {
        FloatVector results[kPixels][kVectors];
        each([&](int p, int j) PHONEBIT_LAMBDA_INLINE { results[p][j] = tile[p][j]; });
        count_reached(results[0], kPixels, kVectors, step, channel, kPartial ? valid : kLanes);
        each([&](int p, int j) PHONEBIT_LAMBDA_INLINE { tile[p][j] = results[p][j]; });
      } break;
#define PHONEBIT_FUNCTION(number, kind, ...) case StepKind::kind:
#define PHONEBIT_OTHER(...)
        PHONEBIT_STEPS(PHONEBIT_OTHER, PHONEBIT_FUNCTION) {
          const auto function = function_of(step.kind);
          each([&](int p, int j) PHONEBIT_LAMBDA_INLINE { tile[p][j] = function(tile[p][j]); });
          break;
        }
#undef PHONEBIT_FUNCTION
#undef PHONEBIT_OTHER
    }
  }

  if (epilogue.value) {
    const int64_t pixel_channels =
        epilogue.pixel_channels;  // stores could change what is read through a pointer
    float* value = epilogue.value + pixel * pixel_channels + channel;
    each([&](int p, int j) PHONEBIT_LAMBDA_INLINE {
      float* to = value + p * pixel_channels + j * kLanes;
      if constexpr (kPartial) {
        store_partial(to, tile[p][j], valid);
      } else {
        store(to, tile[p][j]);
      }
    });
  }
  if constexpr (kVectors * kLanes >= 32) {
    if (epilogue.plane_count) {
      if constexpr (kSmallCode) {
        unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
          FloatVector results[1][kVectors];
          unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE { results[0][j] = tile[p][j]; });
          store_pixel_planes(epilogue, results, pixel + p, channel);
        });
      } else {
        store_planes(epilogue, tile, pixel, channel);
      }
    }
  }
  if (epilogue.bits) {
    FloatVector threshold[kVectors] = {};
    if (epilogue.threshold) {
      unroll<kVectors>([&](int j) PHONEBIT_LAMBDA_INLINE {
        threshold[j] = fetch(epilogue.threshold + channel + j * kLanes);
      });
    }
    unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE { bits[p] = greater_equal_bits(tile[p], threshold); });
  }
}

/// kPixels pixels of kVectors vectors, and their bits. Several tiles may share a word: the first one, at
/// channel % 32 == 0, sets it and so clears its tail.
template <int kPixels, int kVectors, bool kPartial>
PHONEBIT_INLINE void epilogue_pixels(const Epilogue& epilogue, const TileSource& from, int64_t pixel,
                                     int channel, int valid) {
  uint64_t bits[kPixels] = {};
  epilogue_tile<kPixels, kVectors, kPartial>(epilogue, from, pixel, channel, valid, bits);
  if (!epilogue.bits) return;
  const int pixel_words = epilogue.pixel_words;
  uint32_t* to = epilogue.bits + pixel * pixel_words + channel / 32;
  unroll<kPixels>([&](int p) PHONEBIT_LAMBDA_INLINE {
    if constexpr (kVectors * kLanes >= 32) {
      __builtin_memcpy(to + p * pixel_words, &bits[p], kVectors * kLanes / 8);
    } else {
      uint32_t part = (uint32_t)bits[p];
      if (kPartial) part &= (1u << valid) - 1;
      const uint32_t before = channel % 32 ? to[p * pixel_words] : 0;
      to[p * pixel_words] = before | part << (channel % 32);
    }
  });
}

template <int kVectors, bool kPartial>
static inline void epilogue_columns(const Epilogue& epilogue, TileSource from, int pixel0, int count,
                                    int channel, int valid) {
  constexpr int kMaxPixels = kPartial ? kPartialPixels : 4;
  constexpr int kPixels = kEpilogueVectors / kVectors < kMaxPixels ? kEpilogueVectors / kVectors : kMaxPixels;
  int p = 0;
  for (; p + kPixels <= count; p += kPixels, from.v += kPixels * from.stride)
    epilogue_pixels<kPixels, kVectors, kPartial>(epilogue, from, pixel0 + p, channel, valid);
  if constexpr (kPixels > 1) {
    for (; p < count; p++, from.v += from.stride)
      epilogue_pixels<1, kVectors, kPartial>(epilogue, from, pixel0 + p, channel, valid);
  }
}

/// Finishes `count` pixels from pixel0 on, `channels` channels from channel0 (a multiple of 32) on. Outputs
/// may be the very tensor that `from`, a kAdd or a kMultiply step reads: every element is read before it is
/// written, and written once, so call this once for each pixel.
static inline void finish_pixels(const Epilogue& epilogue, const TileSource& from, int pixel0, int count,
                                 int channel0, int channels) {
  int c = 0;
  if constexpr (kWideEpilogue) {
    for (; c + 64 <= channels; c += 64)
      epilogue_columns<64 / kLanes, false>(epilogue, {from.v + c, from.stride}, pixel0, count, channel0 + c,
                                           kLanes);
  }
  for (; c + 32 <= channels; c += 32)
    epilogue_columns<32 / kLanes, false>(epilogue, {from.v + c, from.stride}, pixel0, count, channel0 + c,
                                         kLanes);
  for (; c + kLanes <= channels; c += kLanes)
    epilogue_columns<1, false>(epilogue, {from.v + c, from.stride}, pixel0, count, channel0 + c, kLanes);
  if (c < channels)
    epilogue_columns<1, true>(epilogue, {from.v + c, from.stride}, pixel0, count, channel0 + c, channels - c);
}

/// The same for a kernel's tile: v is [count][kChannelBlock], channels <= kChannelBlock, channel0 a multiple
/// of kChannelBlock. Channels beyond `channels` are ignored; the tile's content is not needed afterwards.
static inline void apply_epilogue(const Epilogue& epilogue, float* v, int pixel0, int count, int channel0,
                                  int channels) {
  finish_pixels(epilogue, {v, kChannelBlock}, pixel0, count, channel0, channels);
}
