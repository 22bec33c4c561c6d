// Convolutions of float values (float32 and u8) of every supported instruction set, against plain loops.
// Float results, weights floats, halves or bytes, must be the very bits of one chain of fused multiply-adds
// per output; u8 results are integers.
// All instruction sets see the same cases; the plain loops, which take most of the time, run once for all.
#include "kernel_check.h"

namespace check {
namespace {

/// Runs a kernel in random parts: rows of prepare_input, then pixel ranges and block ranges.
template <class Kernel, class Input, class Sink>
void run_in_parts(Random& random, const Kernel& kernel, const ConvShape& s, const void* packed,
                  const Input* input, const Sink& sink) {
  AlignedBytes scratch(kernel.scratch_bytes(s));
  const std::vector<int> rows = random_cuts(random, kernel.prepare_rows(s));
  for (size_t i = 0; i + 1 < rows.size(); i++) {
    if (rows[i] < rows[i + 1]) kernel.prepare_input(s, input, scratch.data, rows[i], rows[i + 1]);
  }
  const std::vector<int> pixels = random_cuts(random, s.out_h * s.out_w);
  const std::vector<int> blocks = random_cuts(random, (s.out_c + kChannelBlock - 1) / kChannelBlock);
  for (size_t i = 0; i + 1 < pixels.size(); i++) {
    for (size_t j = 0; j + 1 < blocks.size(); j++)
      kernel.run(s, packed, input, scratch.data, {pixels[i], pixels[i + 1], blocks[j], blocks[j + 1]}, sink);
  }
}

float value_of(float weight) { return weight; }
float value_of(int8_t weight) { return weight; }

/// Of the bits of a finite half.
float value_of(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const float magnitude =
      exponent == 0 ? std::ldexp((float)fraction, -24) : std::ldexp((float)(1024 + fraction), exponent - 25);
  return half & 0x8000 ? -magnitude : magnitude;
}

std::vector<float> random_weights(Random& random, size_t count, float) { return floats(random, count); }

/// Zeros and subnormal halves among ordinary ones.
std::vector<uint16_t> random_weights(Random& random, size_t count, uint16_t) {
  std::vector<uint16_t> halves(count);
  for (uint16_t& half : halves) {
    const unsigned exponent = random() % 8 == 0 ? 0 : pick(random, 1, 20);
    half = (uint16_t)((random() & 0x83ff) | exponent << 10);
  }
  return halves;
}

std::vector<int8_t> random_weights(Random& random, size_t count, int8_t) {
  std::vector<int8_t> bytes(count);
  for (int8_t& byte : bytes) byte = (int8_t)pick(random, -127, 127);
  return bytes;
}

template <class Weight>
void float_convolution(FloatConvKernel<Weight> ValueKernels::* member, Random& random) {
  ConvShape s =
      random_shape(random, pick_one(random, {1, 3, 4, 16, 33, 64, 130, 300}), pick_channels(random), 14);
  if (random() % 8 == 0) {  // dense
    s = ConvShape{};
    s.in_h = s.kernel_h = pick(random, 1, 7), s.in_w = s.kernel_w = pick(random, 1, 7);
    s.in_c = pick(random, 1, 300), s.out_c = pick(random, 1, 200), s.out_h = s.out_w = 1;
    s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
  }
  const std::vector<float> input = floats_or_tiny_ones(random, (size_t)s.in_h * s.in_w * s.in_c);
  const std::vector<Weight> weights =
      random_weights(random, (size_t)s.out_c * s.kernel_h * s.kernel_w * s.in_c, Weight{});
  const int pixels = s.out_h * s.out_w;
  const RandomEpilogue epilogue(random, pixels, s.out_c);
  INFO(describe(s), epilogue.text);
  const auto expected = [&](const Isa& isa) {
    std::vector<float> main;
    for (int p = 0; p < pixels; p++) {
      for (int o = 0; o < s.out_c; o++) {
        const Weight* filter = weights.data() + (size_t)o * s.kernel_h * s.kernel_w * s.in_c;
        float sum = 0;
        for_each_tap(s, p / s.out_w, p % s.out_w, [&](int ky, int kx, int from) {
          for (int c = 0; c < s.in_c; c++) {
            const float x = from < 0 ? 0.0f : input[(size_t)from * s.in_c + c];
            sum = multiply_add(isa, x, value_of(filter[((size_t)ky * s.kernel_w + kx) * s.in_c + c]), sum);
          }
        });
        main.push_back(sum);
      }
    }
    return main;
  };
  const std::vector<float> main = expected(*select_isa(kScalarName));  // fuses
  const unsigned parts_seed = (unsigned)random();
  LateFailure failure;  // after all were tried
  for (const Isa* const isa : isas_with_own(&Isa::values)) {
    INFO(isa->name);
    const FloatConvKernel<Weight>& kernel = isa->values->*member;
    Random parts(parts_seed);
    AlignedBytes packed(kernel.packed_bytes(s));
    kernel.pack_weights(s, weights.data(), packed.data);
    Outputs out(parts, pixels, s.out_c);
    run_in_parts(parts, kernel, s, packed.data, input.data(), epilogue.make(out));
    failure.keep([&] { compare(out, epilogue, isa->values->fuses ? main : expected(*isa)); });
  }
  failure.rethrow();
}

/// large: windows as AlexNet has them, with filters enough for kernels that only pay then.
void u8_convolution(Random& random, bool large) {
  const int in_c =
      large ? pick_one(random, {1, 3, 3, 3, 4}) : pick_one(random, {1, 2, 3, 3, 3, 4, 5, 33, 100});
  const int out_c = large ? pick_one(random, {31, 64, 65, 96, 128, 130}) : pick_channels(random);
  ConvShape s = random_shape(random, in_c, out_c, random() % 2 ? 14 : large ? 100 : 40, large);
  s.input_mul = pick_one(random, {1, 1, 2, 3, -1, -2, 0});
  s.input_add = pick_one(random, {0, 0, -255, 128, 7});
  std::vector<uint8_t> input((size_t)s.in_h * s.in_w * s.in_c);
  const bool extreme = random() % 4 == 0;  // the largest sums, where 16-bit lanes would overflow first
  for (uint8_t& x : input) x = extreme ? 255 : (uint8_t)random();
  std::vector<uint32_t> weights = bits(random, (size_t)s.out_c * s.kernel_h * s.kernel_w, s.in_c);
  if (extreme && random() % 2) {
    for (size_t i = 0; i < weights.size(); i++) {
      const bool last = (i + 1) % words(s.in_c) == 0 && s.in_c % 32;
      weights[i] = last ? (1u << s.in_c % 32) - 1 : ~0u;
    }
  }
  const int pixels = s.out_h * s.out_w;
  std::vector<int> accumulators;
  for (int p = 0; p < pixels; p++) {
    for (int o = 0; o < s.out_c; o++) {
      int acc = 0;
      for_each_tap(s, p / s.out_w, p % s.out_w, [&](int ky, int kx, int from) {
        const uint32_t* w =
            weights.data() + ((size_t)(o * s.kernel_h + ky) * s.kernel_w + kx) * words(s.in_c);
        for (int c = 0; c < s.in_c && from >= 0; c++)
          acc += sign_of_bit(w, c) * (s.input_mul * input[(size_t)from * s.in_c + c] + s.input_add);
      });
      accumulators.push_back(acc);
    }
  }
  // Thresholds near a real accumulator, so that off-by-one errors show.
  std::vector<int32_t> thresholds(s.out_c);
  for (int o = 0; o < s.out_c; o++)
    thresholds[o] = accumulators[(size_t)pick(random, 0, pixels - 1) * s.out_c + o] + pick(random, -1, 1);
  const RandomEpilogue epilogue(random, pixels, s.out_c);
  const bool threshold_form = random() % 2;
  INFO(describe(s), threshold_form ? " thresholds" : epilogue.text);
  const unsigned parts_seed = (unsigned)random();

  const auto check = [&](const U8ConvKernel& kernel) {
    Random parts(parts_seed);
    AlignedBytes packed(kernel.packed_bytes(s));
    kernel.pack_weights(s, weights.data(), threshold_form ? thresholds.data() : nullptr, packed.data);
    Outputs out(parts, pixels, s.out_c);
    const Epilogue e = epilogue.make(out);
    const AccumulatorSink sink = threshold_form ? out.threshold_sink() : AccumulatorSink{nullptr, 0, &e};
    run_in_parts(parts, kernel, s, packed.data, input.data(), sink);
    if (!threshold_form)
      return compare(out, epilogue, std::vector<float>(accumulators.begin(), accumulators.end()));
    REQUIRE_MESSAGE(out.intact(), "written outside the output");
    for (int p = 0; p < pixels; p++) {
      std::vector<uint32_t> expected(words(s.out_c));
      for (int o = 0; o < s.out_c; o++)
        expected[o / 32] |= (uint32_t)(accumulators[(size_t)p * s.out_c + o] >= thresholds[o]) << (o % 32);
      out.compare_bits(p, expected);
    }
  };
  LateFailure failure;  // after all kernels were tried
  for (const Isa* const isa : isas_with_own(&Isa::u8_conv)) {
    for (const U8ConvKernel* const* kernel = isa->u8_conv; *kernel; kernel++) {
      INFO(isa->name, " ", (*kernel)->name);
      if ((*kernel)->supports(s)) failure.keep([&] { check(**kernel); });
    }
  }
  failure.rethrow();
}

TEST_CASE("f32 weights") {
  for_each_case(test_cases(150), [](Random& r) { float_convolution<float>(&ValueKernels::f32_conv, r); });
}
TEST_CASE("f16 weights") {
  for_each_case(test_cases(150), [](Random& r) { float_convolution<uint16_t>(&ValueKernels::f16_conv, r); });
}
TEST_CASE("8-bit weights") {
  for_each_case(test_cases(150), [](Random& r) { float_convolution<int8_t>(&ValueKernels::w8_conv, r); });
}
TEST_CASE("u8 inputs") {
  for_each_case(test_cases(150), [](Random& r) { u8_convolution(r, false); });
}
TEST_CASE("u8 inputs and large windows") {
  for_each_case(test_cases(150), [](Random& r) { u8_convolution(r, true); });
}

}  // namespace
}  // namespace check
