// What the native kernel tests share: guarded buffers, random cases, and the epilogue as plain loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "kernel_types.h"
#include "parameters.h"
#include "select.h"
#include "subcases.h"

namespace check {

using namespace phonebit::engine::cpu;

using Random = std::mt19937;

inline int pick(Random& random, int low, int high) {
  return low + (int)(random() % (unsigned)(high - low + 1));
}

template <size_t kCount>
int pick_one(Random& random, const int (&values)[kCount]) {
  return values[random() % kCount];
}

/// Channel counts around every boundary of words, vectors and blocks.
inline int pick_channels(Random& random) {
  return pick_one(random, {1, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 128, 130});
}

inline float pick_float(Random& random) { return (float)((int)(random() % 20001) - 10000) / 4096.0f; }

inline std::vector<float> floats(Random& random, size_t count) {
  std::vector<float> v(count);
  for (float& x : v) x = pick_float(random);
  return v;
}

/// The same, or in one of eight calls all of them subnormal, or nearly so: 32-bit Arm's NEON would take these
/// for 0.
inline std::vector<float> floats_or_tiny_ones(Random& random, size_t count) {
  std::vector<float> v = floats(random, count);
  if (random() % 8 == 0) {
    for (float& x : v) x *= 0x1p-130f;
  }
  return v;
}

/// Packed pixels of `channels` random bits; tail bits 0.
inline std::vector<uint32_t> bits(Random& random, size_t pixels, int channels) {
  std::vector<uint32_t> v(pixels * words(channels));
  for (uint32_t& word : v) word = (uint32_t)random();
  if (channels % 32) {
    for (size_t p = 0; p < pixels; p++) v[(p + 1) * words(channels) - 1] &= (1u << channels % 32) - 1;
  }
  return v;
}

inline int sign_of_bit(const uint32_t* pixel, int channel) {
  return (pixel[channel / 32] >> (channel % 32) & 1) ? 1 : -1;
}

/// An output between guard elements; deliberately not aligned beyond its element.
template <class T>
struct Guarded {
  static constexpr ptrdiff_t kGuard = 65;
  std::vector<T> memory;
  size_t count;

  explicit Guarded(size_t n) : memory(n + 2 * kGuard), count(n) {
    std::memset(memory.data(), 0xA5, memory.size() * sizeof(T));
  }
  T* data() { return memory.data() + kGuard; }
  bool intact() const { return untouched(-kGuard, kGuard) && untouched(count, kGuard); }
  /// Whether elements [first, first + length) still have their pattern.
  bool untouched(ptrdiff_t first, size_t length) const {
    const auto* bytes = (const unsigned char*)(memory.data() + kGuard + first);
    return std::all_of(bytes, bytes + length * sizeof(T), [](unsigned char byte) { return byte == 0xA5; });
  }
};

struct AlignedBytes {
  char* data;
  explicit AlignedBytes(size_t bytes) : data((char*)std::aligned_alloc(64, (bytes + 64) / 64 * 64)) {
    std::memset(data, 0x5A, (bytes + 64) / 64 * 64);
  }
  ~AlignedBytes() { std::free(data); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
};

/// All digits: two floats differ in their last bit, if at all.
inline std::string digits(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", number);
  return text;
}

inline std::string hex(uint32_t word) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", word);
  return text;
}

/// Where a kernel writes. Half of the time it is a part of a larger layer, so that pixels have gaps between
/// them.
struct Outputs {
  int pixels, channels, pixel_channels, pixel_words;
  Guarded<float> value;
  Guarded<uint32_t> bit_words;

  Outputs(Random& random, int pixel_count, int channel_count)
      : Outputs(pixel_count, channel_count, random() % 2 ? pick(random, 1, 70) : 0) {}
  Outputs(int pixel_count, int channel_count, int other_channels)
      : pixels(pixel_count),
        channels(channel_count),
        pixel_channels(channel_count + other_channels),
        pixel_words(words(pixel_channels)),
        value((size_t)pixels * pixel_channels),
        bit_words((size_t)pixels * pixel_words) {}

  AccumulatorSink threshold_sink() { return {bit_words.data(), pixel_words, nullptr}; }
  bool intact() const {
    return value.intact() && bit_words.intact() && gaps_intact(value, pixel_channels, channels) &&
           gaps_intact(bit_words, pixel_words, words(channels));
  }

  void compare_bits(int pixel, const std::vector<uint32_t>& expected) {
    for (size_t w = 0; w < expected.size(); w++) {
      const uint32_t got = bit_words.data()[(size_t)pixel * pixel_words + w];
      if (got != expected[w])
        FAIL("pixel ", pixel, " word ", w, ": got ", hex(got), ", expected ", hex(expected[w]));
    }
  }

 private:
  template <class T>
  bool gaps_intact(const Guarded<T>& output, int step, int used) const {
    for (int p = 0; p < pixels; p++) {
      if (!output.untouched((size_t)p * step + used, step - used)) return false;
    }
    return true;
  }
};

/// A random epilogue with its constants and tensors; `expect` computes it step by step.
struct RandomEpilogue {
  std::vector<EpilogueStep> steps;
  std::vector<std::vector<float>> storage;
  std::vector<float> threshold;
  bool with_value, with_bits;
  int pixels, channels;
  std::string text;

  const float* keep(std::vector<float> v) {
    storage.push_back(std::move(v));
    return storage.back().data();
  }

  RandomEpilogue(Random& random, int pixel_count, int channel_count)
      : pixels(pixel_count), channels(channel_count) {
    const int count = pick(random, 0, 5);
    for (int i = 0; i < count; i++) {
      EpilogueStep step = {};
      constexpr StepKind kKinds[] = {StepKind::kScaleBias, StepKind::kAdd,   StepKind::kMultiply,
                                     StepKind::kClamp,     StepKind::kPrelu, StepKind::kPrelu,
                                     StepKind::kRound};
      step.kind = kKinds[random() % std::size(kKinds)];
      const bool has_two_slopes = random() % 2;
      const bool per_pixel = random() % 2;
      const size_t size = (size_t)channels * (per_pixel ? pixels : 1);
      switch (step.kind) {
        case StepKind::kScaleBias:
          step.a = keep(floats_or_tiny_ones(random, channels));
          step.b = keep(floats_or_tiny_ones(random, channels));
          break;
        case StepKind::kAdd:
        case StepKind::kMultiply:
          step.tensor = keep(floats_or_tiny_ones(random, size));
          step.tensor_pixel_stride = per_pixel ? channels : 0;
          break;
        case StepKind::kClamp:
          step.low = random() % 2 ? 0.0f : -1.0f;
          step.high = random() % 2 ? INFINITY : 6.0f;
          break;
        case StepKind::kRound:
          break;
        default:
          step.a = keep(floats(random, size));
          if (has_two_slopes) step.b = keep(floats(random, size));
          step.slope_pixel_stride = per_pixel ? channels : 0;
      }
      steps.push_back(step);
      text += " step" + std::to_string((int)step.kind) + (per_pixel ? "p" : "c");
    }
    with_bits = random() % 4;
    with_value = !with_bits || random() % 2;
    if (random() % 2) threshold = floats_or_tiny_ones(random, channels);
    text += with_value ? " value" : "";
    text += with_bits ? " bits" : "";
  }

  Epilogue make(Outputs& out) const {
    return {steps.data(),
            (int)steps.size(),
            with_value ? out.value.data() : nullptr,
            with_bits ? out.bit_words.data() : nullptr,
            threshold.empty() ? nullptr : threshold.data(),
            channels,
            out.pixel_channels,
            out.pixel_words};
  }

  float expect(float v, int pixel, int c) const {
    for (const EpilogueStep& s : steps) {
      switch (s.kind) {
        case StepKind::kScaleBias: {
          const float scaled = v * s.a[c];
          v = scaled + s.b[c];
          break;
        }
        case StepKind::kAdd:
          v = v + s.tensor[pixel * s.tensor_pixel_stride + c];
          break;
        case StepKind::kMultiply:
          v = v * s.tensor[pixel * s.tensor_pixel_stride + c];
          break;
        case StepKind::kClamp:
          v = std::fmin(std::fmax(v, s.low), s.high);
          break;
        case StepKind::kRound:
          v = std::nearbyint(v);
          break;
        default: {
          const int64_t at = pixel * s.slope_pixel_stride + c;
          if (v < 0)
            v = v * s.a[at];
          else if (s.b != nullptr)
            v = v * s.b[at];
        }
      }
    }
    return v;
  }
};

/// Compares a kernel's output with main values [pixel][channel] pushed through the epilogue.
inline void compare(Outputs& out, const RandomEpilogue& epilogue, const std::vector<float>& main) {
  REQUIRE_MESSAGE(out.intact(), "written outside the output");
  for (int p = 0; p < epilogue.pixels; p++) {
    std::vector<uint32_t> expected_bits(words(epilogue.channels));
    for (int c = 0; c < epilogue.channels; c++) {
      const float v = epilogue.expect(main[(size_t)p * epilogue.channels + c], p, c);
      const float got = out.value.data()[(size_t)p * out.pixel_channels + c];
      if (epilogue.with_value && !(got == v))
        FAIL("pixel ", p, " channel ", c, ": got ", digits(got), ", expected ", digits(v));
      const float t = epilogue.threshold.empty() ? 0.0f : epilogue.threshold[c];
      expected_bits[c / 32] |= (uint32_t)(v >= t) << (c % 32);
    }
    if (epilogue.with_bits) out.compare_bits(p, expected_bits);
  }
}

/// A random window over a random map. `channels_out` 0: the same channels (depthwise, pooling).
/// large_windows: as of first layers, which move on by several pixels.
inline ConvShape random_shape(Random& random, int channels_in, int channels_out, int max_pixels,
                              bool large_windows = false) {
  for (;;) {
    ConvShape s = {};
    s.in_h = pick(random, 1, max_pixels), s.in_w = pick(random, 1, max_pixels);
    s.in_c = channels_in, s.out_c = channels_out ? channels_out : channels_in;
    s.kernel_h = pick_one(random, {1, 1, 2, 3, 3, 5, 7}),
    s.kernel_w = random() % 4 ? s.kernel_h : pick(random, 1, 4);
    s.stride_h = pick(random, 1, 3), s.stride_w = random() % 4 ? s.stride_h : pick(random, 1, 3);
    s.dilation_h = pick_one(random, {1, 1, 1, 2}), s.dilation_w = pick_one(random, {1, 1, 1, 3});
    if (large_windows) {
      s.kernel_h = pick(random, 8, 12), s.kernel_w = random() % 4 ? s.kernel_h : pick(random, 8, 12);
      s.stride_h = pick(random, 2, 5), s.stride_w = random() % 4 ? s.stride_h : pick(random, 2, 5);
      s.dilation_h = s.dilation_w = 1;
    }
    const int span_h = (s.kernel_h - 1) * s.dilation_h + 1, span_w = (s.kernel_w - 1) * s.dilation_w + 1;
    if (random() % 3) {
      s.pad_top = pick(random, 0, span_h / 2), s.pad_bottom = pick(random, 0, span_h / 2);
      s.pad_left = pick(random, 0, span_w / 2), s.pad_right = pick(random, 0, span_w / 2);
    }
    s.input_mul = 1;
    s.out_h = s.in_h + s.pad_top + s.pad_bottom - span_h,
    s.out_w = s.in_w + s.pad_left + s.pad_right - span_w;
    if (s.out_h < 0 || s.out_w < 0) continue;
    s.out_h = s.out_h / s.stride_h + 1, s.out_w = s.out_w / s.stride_w + 1;
    if (s.out_h * s.out_w <= 600) return s;
  }
}

inline std::string describe(const ConvShape& s) {
  char text[300];
  std::snprintf(text, sizeof text,
                "in %dx%dx%d out %dx%dx%d k %dx%d s %d,%d d %d,%d pad t%d l%d b%d r%d value %d mul %d add %d",
                s.in_h, s.in_w, s.in_c, s.out_h, s.out_w, s.out_c, s.kernel_h, s.kernel_w, s.stride_h,
                s.stride_w, s.dilation_h, s.dilation_w, s.pad_top, s.pad_left, s.pad_bottom, s.pad_right,
                s.pad_value, s.input_mul, s.input_add);
  return text;
}

/// Calls visit(ky, kx, input pixel index or -1) for every tap of output pixel (y, x).
template <class Visit>
void for_each_tap(const ConvShape& s, int y, int x, const Visit& visit) {
  for (int ky = 0; ky < s.kernel_h; ky++) {
    for (int kx = 0; kx < s.kernel_w; kx++) {
      const int in_y = y * s.stride_h - s.pad_top + ky * s.dilation_h;
      const int in_x = x * s.stride_w - s.pad_left + kx * s.dilation_w;
      const bool inside = in_y >= 0 && in_y < s.in_h && in_x >= 0 && in_x < s.in_w;
      visit(ky, kx, inside ? in_y * s.in_w + in_x : -1);
    }
  }
}

/// [0, count) in up to four parts at random places.
inline std::vector<int> random_cuts(Random& random, int count) {
  std::vector<int> cuts = {0, count};
  for (int i = random() % 4; i > 0; i--)
    cuts.insert(cuts.end() - 1, pick(random, cuts[cuts.size() - 2], count));
  return cuts;
}

/// In the order of preference.
inline std::vector<const Isa*> supported_isas() {
  std::vector<const Isa*> isas;
  for (const Isa* const* isa = kBuiltIsas; *isa; isa++) {
    if ((*isa)->supported()) isas.push_back(*isa);
  }
  return isas;
}

/// Instruction sets that only a test program has (dummy_isa.cpp).
inline std::vector<const Isa*>& test_isas() {
  static std::vector<const Isa*> isas;
  return isas;
}

/// Those of both whose kernels none before them has: on 64-bit Arm most are NEON's. `kernels` is a member, or a
/// function of an instruction set.
template <class Kernels>
std::vector<const Isa*> isas_with_own(const Kernels& kernels) {
  std::vector<const Isa*> isas, all = supported_isas();
  all.insert(all.end(), test_isas().begin(), test_isas().end());
  for (const Isa* const isa : all) {
    const auto has_same = [&](const Isa* other) {
      return std::invoke(kernels, *other) == std::invoke(kernels, *isa);
    };
    if (std::none_of(isas.begin(), isas.end(), has_same)) isas.push_back(isa);
  }
  return isas;
}

/// Runs body(random) for `cases` random cases.
template <class Body>
void for_each_case(unsigned cases, const Body& body) {
  for (unsigned i = 0; i < cases; i++) {
    INFO("PHONEBIT_TEST_SEED=", test_seed(), ", case ", i);
    Random random(test_seed() * 1000003u + i);
    body(random);
  }
}

/// Runs body(isa, random) for `cases` random cases on every supported instruction set with such kernels of its
/// own. The first failure ends those of its instruction set.
template <class Kernels, class Body>
void for_each_isa(const Kernels& kernels, unsigned cases, const Body& body) {
  const auto name_of = [](const Isa* isa) { return isa->name; };
  for_each_subcase(isas_with_own(kernels), name_of, [&](const Isa* isa) {
    for_each_case(cases, [&](Random& random) { body(*isa, random); });
  });
}

/// a * b + c as float layers of the instruction set round it.
inline float multiply_add(const Isa& isa, float a, float b, float c) {
  return isa.values->fuses ? std::fma(a, b, c) : a * b + c;
}

inline unsigned test_cases(unsigned otherwise) { return parameter("PHONEBIT_TEST_CASES", otherwise); }

}  // namespace check
