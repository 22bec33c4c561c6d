// Kernels that look at one pixel at a time: element-wise layers (the operand through an epilogue) and
// softmax with its logarithm.
//
// Include inside an anonymous namespace of phonebit::engine::cpu, after simd/<isa>.h and kernel_types.h.
#pragma once

#include "bit_lanes.inl"
#include "epilogue.inl"
#include "pieces.inl"

/// Operations on one value, for Pieces.
static int64_t operations_of(const Epilogue& epilogue) {
  int64_t operations = 1 + epilogue.step_count;
  for (int i = 0; i < epilogue.step_count; i++) operations += epilogue.steps[i].count;
  return operations;
}

/// Runs the epilogue over pixels whose values fill(pixel, channel0, channels, out) provides.
template <class Fill>
static inline void elementwise(int pixel_begin, int pixel_end, const Epilogue& epilogue, const Stop& stop,
                               const Fill& fill) {
  constexpr int kPixels = 16;
  Pieces pieces(stop);
  const int64_t operations = operations_of(epilogue);
  alignas(64) float tile[kPixels * kChannelBlock];
  for (int pixel = pixel_begin; pixel < pixel_end; pixel += kPixels) {
    const int count = pixel_end - pixel < kPixels ? pixel_end - pixel : kPixels;
    for (int channel0 = 0; channel0 < epilogue.channels; channel0 += kChannelBlock) {
      const int left = epilogue.channels - channel0;
      const int channels = left < kChannelBlock ? left : kChannelBlock;
      for (int p = 0; p < count; p++) fill((int64_t)pixel + p, channel0, channels, tile + p * kChannelBlock);
      apply_epilogue(epilogue, tile, pixel, count, channel0, channels);
      if (pieces.is_end_after((int64_t)count * channels * operations)) return;
    }
  }
}

/// The epilogue reads float32 operands where they are, a few pixels at a time so that their channels stay in
/// the cache.
static void elementwise_f32(const float* input, int pixel_begin, int pixel_end, const Epilogue& epilogue,
                            const Stop& stop) {
  constexpr int kPixels = 16, kChannels = 64 * kChannelBlock;
  Pieces pieces(stop);
  const int64_t operations = operations_of(epilogue);
  for (int pixel = pixel_begin; pixel < pixel_end; pixel += kPixels) {
    const int count = pixel_end - pixel < kPixels ? pixel_end - pixel : kPixels;
    const float* from = input + (int64_t)pixel * epilogue.pixel_channels;
    for (int channel0 = 0; channel0 < epilogue.channels; channel0 += kChannels) {
      const int left = epilogue.channels - channel0;
      const int channels = left < kChannels ? left : kChannels;
      finish_pixels(epilogue, {from + channel0, epilogue.pixel_channels}, pixel, count, channel0, channels);
      if (pieces.is_end_after((int64_t)count * channels * operations)) return;
    }
  }
}

static void elementwise_u8(const uint8_t* input, int pixel_begin, int pixel_end, const Epilogue& epilogue,
                           const Stop& stop) {
  const auto fill = [&](int64_t pixel, int channel0, int channels, float* out) {
    const uint8_t* from = input + pixel * epilogue.pixel_channels + channel0;
    for (int c = 0; c < channels; c++) out[c] = (float)from[c];
  };
  elementwise(pixel_begin, pixel_end, epilogue, stop, fill);
}

static void elementwise_bits(const uint32_t* input, int pixel_begin, int pixel_end, const Epilogue& epilogue,
                             const Stop& stop) {
  const auto fill = [&](int64_t pixel, int channel0, int channels, float* out) {
    const uint32_t* from = input + pixel * words(epilogue.pixel_channels) + channel0 / 32;
    for (int c = 0; c < channels; c += kLanes) {
      const FloatVector values = lanes_of_bits(from[c / 32], c % 32) ? broadcast(1.0f) : broadcast(-1.0f);
      store(out + c, values);
    }
  };
  elementwise(pixel_begin, pixel_end, epilogue, stop, fill);
}

static void bit_planes(const float* input, int pixel_begin, int pixel_end, int channels, int planes,
                       uint32_t* const* outputs) {
  constexpr int kVectors = 32 / kLanes;
  const float* from = input + (int64_t)pixel_begin * channels;
  for (int64_t pixel = pixel_begin; pixel < pixel_end; pixel++, from += channels) {
    for (int c = 0; c < channels; c += 32) {
      float padded[32] = {};
      const float* word = from + c;
      if (channels - c < 32) {
        __builtin_memcpy(padded, word, (size_t)(channels - c) * sizeof(float));
        word = padded;
      }
      IntVector whole[kVectors];
      FloatVector one[kVectors], bits[kVectors];
      unroll<kVectors>([&](int i) PHONEBIT_LAMBDA_INLINE {
        const FloatVector v = minimum(maximum(load(word + i * kLanes), FloatVector{}), broadcast(255.0f));
        whole[i] = __builtin_convertvector(v, IntVector);
        one[i] = broadcast(1.0f);
      });
      for (int plane = 0; plane < planes; plane++) {
        unroll<kVectors>([&](int i) PHONEBIT_LAMBDA_INLINE {
          bits[i] = __builtin_convertvector(whole[i] & (1 << plane), FloatVector);
        });
        outputs[plane][pixel * words(channels) + c / 32] = (uint32_t)greater_equal_bits(bits, one);
      }
    }
  }
}

/// Sixteen partial results, channel c in lane c % 16, whatever the vector width: sums come out the same on
/// every ISA.
struct SixteenLanes {
  static constexpr int kVectors = 16 / kLanes;
  FloatVector v[kVectors];
};

/// exp(x - max) / sum: the largest exponent is 0, so nothing overflows and the sum is at least 1.
/// kLog: its logarithm, x - max - log(sum).
template <bool kLog>
static void softmax(const float* input, int pixel_begin, int pixel_end, int channels, float* output) {
  for (int64_t pixel = pixel_begin; pixel < pixel_end; pixel++) {
    const float* x = input + pixel * channels;
    float* out = output + pixel * channels;
    float largest = x[0];
    for (int c = 1; c < channels; c++) largest = x[c] > largest ? x[c] : largest;
    SixteenLanes sums = {};
    for (int first = 0; first < channels; first += 16) {
      for (int j = 0; j < SixteenLanes::kVectors; j++) {
        const int c = first + j * kLanes, left = channels - c;
        if (left >= kLanes) {
          const FloatVector shifted = load(x + c) - largest, e = exponential(shifted);
          store(out + c, kLog ? shifted : e);
          sums.v[j] += e;
        } else if (left > 0) {
          const FloatVector shifted = load_partial(x + c, left) - largest, e = exponential(shifted);
          float powers[kLanes];
          store(powers, e);
          store_partial(out + c, kLog ? shifted : e, left);
          sums.v[j] += load_partial(powers, left);
        }
      }
    }
    float lanes[16];
    __builtin_memcpy(lanes, sums.v, sizeof lanes);
    for (int half = 8; half > 0; half /= 2) {
      for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
    }
    if (kLog) {
      const float log_sum = logarithm(broadcast(lanes[0]))[0];
      for (int c = 0; c < channels; c++) out[c] -= log_sum;
    } else {
      for (int c = 0; c < channels; c++) out[c] /= lanes[0];
    }
  }
}
